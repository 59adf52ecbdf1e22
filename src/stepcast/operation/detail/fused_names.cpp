// Kernels fused by Inductor, which have the fused operators in their names.
#include <algorithm>

#include "stepcast/base/text.h"
#include "stepcast/operation/detail/op_rules.h"

namespace stepcast {
namespace {

// The row of a part: Inductor uses names of ATen, so "aten::" is prepended.
const detail::OpRow* row_of_part(std::string_view part) {
  return detail::find_row(std::string("aten::").append(part));
}

}  // namespace

bool parse_fused_kernel_name(std::string_view name, FusedKernelName& out) {
  using Kind = FusedKernelName::Kind;
  out = {};
  constexpr std::string_view kTriton = "triton_";
  constexpr std::size_t kLongest = 1024, kMostWords = 8;
  if (!name.starts_with(kTriton) || name.size() > kLongest) return false;
  name.remove_prefix(kTriton.size());
  constexpr std::pair<std::string_view, Kind> kKinds[] = {{"poi_", Kind::pointwise},
                                                          {"red_", Kind::reduction},
                                                          {"per_", Kind::persistent_reduction},
                                                          {"tem_", Kind::template_kernel},
                                                          {"for_", Kind::other},
                                                          {"mix_", Kind::other},
                                                          {"spl_", Kind::other}};
  for (const auto& [prefix, kind] : kKinds) {
    if (!name.starts_with(prefix)) continue;
    out.kind = kind;
    name.remove_prefix(prefix.size());
    break;
  }
  constexpr std::string_view kFused = "fused_";
  if (name.starts_with(kFused)) name.remove_prefix(kFused.size());
  // The number of the kernel.
  while (!name.empty() && is_digit(name.back())) name.remove_suffix(1);
  if (name.ends_with('_')) name.remove_suffix(1);
  // Names of operators may contain and begin with underscores: the longest known name is taken.
  while (!name.empty()) {
    std::size_t longest = 0;
    std::size_t words = 0;
    for (std::size_t end = 1; end <= name.size() && words < kMostWords; ++end) {
      if (end < name.size() && name[end] != '_') continue;
      ++words;
      if (row_of_part(name.substr(0, end)) != nullptr) longest = end;
    }
    if (longest == 0 && name.front() == '_') {
      name.remove_prefix(1);  // the separator before a name without leading underscore
      continue;
    }
    if (longest == 0) {
      longest = std::min(name.find('_'), name.size());
      ++out.unknown_parts;
    }
    out.parts.push_back(name.substr(0, longest));
    name.remove_prefix(longest);
    if (name.starts_with('_')) name.remove_prefix(1);
  }
  return true;
}

namespace detail {

// The arguments of a kernel are its inputs and, last, its output.
Status fused_name_rule(const FrameworkCall& call, const Rule&, OperationList& out) {
  FusedKernelName fused;
  if (!parse_fused_kernel_name(call.name, fused)) return missing(call, "not a name of a fused kernel");
  std::vector<const TensorArgument*> tensors;
  for (const auto list : {call.inputs, call.outputs}) {
    for (const TensorArgument& tensor : list)
      if (tensor.on_gpu) tensors.push_back(&tensor);
  }
  if (tensors.empty()) return missing(call, "its tensors are not recorded");
  using Kind = FusedKernelName::Kind;
  if (fused.kind == Kind::template_kernel && !fused.parts.empty()) {
    // A template of one GEMM; the other parts are its epilogue. The result comes last.
    for (const std::string_view part : fused.parts) {
      const OpRow* row = row_of_part(part);
      const bool product =
          row != nullptr && (row->rule.family == "gemm" || row->rule.family == "batched_gemm" ||
                             row->rule.family == "convolution");
      if (!product || call.inputs.size() < 2) continue;
      FrameworkCall inner = call;
      inner.arguments = {};
      if (call.outputs.empty()) inner.inputs = call.inputs.first(call.inputs.size() - 1);
      return row->rule.run(inner, row->rule, out);
    }
  }
  // FLOPs per element are summed over the parts; one normalisation decides the class.
  double flops = 0;
  bool normalizes = false;
  for (const std::string_view part : fused.parts) {
    const OpRow* row = row_of_part(part);
    if (row == nullptr) continue;
    flops += static_cast<double>(row->rule.flops_per_element());
    const std::string_view family = row->rule.family;
    normalizes =
        normalizes || family.ends_with("norm") || family.ends_with("softmax") || family == "cross_entropy";
  }
  const TensorArgument& written = *tensors.back();
  const TensorArgument* unit = largest(call);
  if (unit == nullptr) return missing(call, "no tensor with an element type");
  const double bytes = bytes_of(call.inputs) + bytes_of(call.outputs);
  if (fused.kind == Kind::pointwise) {
    const double whole = bytes_of(*unit);
    if (whole <= 0) return Ok{};
    out.push_back(elementwise({.function = ElementwiseFunction::other,
                               .elements = unit->elements(),
                               .reads = static_cast<float>((bytes - bytes_of(written)) / whole),
                               .writes = static_cast<float>(bytes_of(written) / whole),
                               .flops_per_element = static_cast<float>(flops),
                               .inner = unit->shape.empty() ? 1 : unit->shape.back()},
                              unit->dtype));
    return Ok{};
  }
  out.push_back(
      {AmountShape{.flops = flops * static_cast<double>(unit->elements()),
                   .bytes_read = bytes - bytes_of(written),
                   .bytes_written = bytes_of(written),
                   .kernel_class = normalizes ? KernelClass::normalization : KernelClass::reduction},
       unit->dtype});
  return Ok{};
}

}  // namespace detail
}  // namespace stepcast
