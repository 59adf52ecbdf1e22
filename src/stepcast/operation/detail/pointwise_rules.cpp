// Element-wise arithmetic, reductions, and operators priced by their traffic.
#include <algorithm>

#include "stepcast/operation/detail/op_rules.h"

namespace stepcast::detail {
namespace {

// part / whole; 0 for an empty whole.
float ratio(double part, double whole) { return whole > 0 ? static_cast<float>(part / whole) : 0.0F; }

// The scalar variant of a function if only one operand is a tensor.
ElementwiseFunction with_scalar(ElementwiseFunction function, const FrameworkCall& call,
                                std::int64_t elements) {
  int tensors = 0;
  for (const TensorArgument& tensor : call.inputs)
    if (tensor.on_gpu && (tensor.elements() > 1 || elements <= 1)) ++tensors;
  if (tensors > 1) return function;
  switch (function) {
    case ElementwiseFunction::add: return ElementwiseFunction::add_scalar;
    case ElementwiseFunction::multiply: return ElementwiseFunction::multiply_scalar;
    case ElementwiseFunction::divide: return ElementwiseFunction::divide_scalar;
    case ElementwiseFunction::power: return ElementwiseFunction::power_scalar;
    default: return function;
  }
}

// mul(a, b, out=c) has c among its inputs but only writes it; mul_(c, b) reads it.
double bytes_read_by(const FrameworkCall& call) {
  const bool has_destination = call.inputs.size() > 1 && !call.outputs.empty() && !call.name.ends_with('_') &&
                               call.outputs.front().memory != 0 &&
                               call.inputs.back().memory == call.outputs.front().memory;
  return bytes_of(has_destination ? call.inputs.first(call.inputs.size() - 1) : call.inputs);
}

}  // namespace

// Reads and writes in units of the largest tensor.
Status pointwise_rule(const FrameworkCall& call, const Rule& rule, OperationList& out) {
  const PointwiseRule& details = rule.as<PointwiseRule>();
  const TensorArgument* unit = largest(call);
  if (unit == nullptr) return missing(call, "no tensor with an element type");
  // Two small operands may broadcast to a large result.
  std::int64_t elements = unit->elements();
  for (const TensorArgument& tensor : call.outputs)
    if (tensor.on_gpu) elements = std::max(elements, tensor.elements());
  const double unit_bytes = static_cast<double>(elements) * element_size(unit->dtype).value();
  ElementwiseShape shape{.function = with_scalar(details.function, call, elements),
                         .elements = elements,
                         .reads = ratio(bytes_read_by(call), unit_bytes),
                         .writes = call.outputs.empty() ? 1.0F : ratio(bytes_of(call.outputs), unit_bytes),
                         .flops_per_element = details.flops,
                         .inner = unit->shape.empty() ? 1 : unit->shape.back()};
  // Masks are counted with the function: one byte per element.
  const double mask = element_size(unit->dtype).value() > 0 ? 1 / element_size(unit->dtype).value() : 0;
  if (details.function == ElementwiseFunction::dropout && shape.writes > 1)
    shape.writes = std::max(shape.writes - static_cast<float>(mask), 1.0F);
  if (details.function == ElementwiseFunction::masked_fill && shape.reads > 1)
    shape.reads = std::max(shape.reads - static_cast<float>(mask), 1.0F);
  out.push_back(elementwise(shape, unit->dtype));
  return Ok{};
}

Status pointwise_backward_rule(const FrameworkCall& call, const Rule& rule, OperationList& out) {
  const PointwiseRule& details = rule.as<PointwiseRule>();
  const TensorArgument* unit = largest(call);
  if (unit == nullptr) return missing(call, "no tensor with an element type");
  out.push_back(elementwise({.function = details.function,
                             .elements = unit->elements(),
                             .reads = static_cast<float>(details.operands),
                             .flops_per_element = details.flops,
                             .inner = unit->shape.empty() ? 1 : unit->shape.back()},
                            unit->dtype, Direction::backward));
  return Ok{};
}

// aten::_foreach_add_ and similar: one kernel for a list of tensors, with the function of the operator
// without "_foreach_".
Status foreach_rule(const FrameworkCall& call, const Rule&, OperationList& out) {
  std::string_view base = call.name;
  const std::size_t at = base.find("_foreach_");
  if (at != std::string_view::npos) base.remove_prefix(at + 9);
  while (base.ends_with('_')) base.remove_suffix(1);
  const OpRow* row = find_row(std::string("aten::").append(base));
  const TensorArgument* unit = largest(call);
  if (unit == nullptr) return missing(call, "no tensor with an element type");
  std::span<const TensorArgument> list = tensors_at(call, 0);
  if (list.empty()) list = call.inputs;
  double elements = 0;
  for (const TensorArgument& tensor : list)
    if (tensor.on_gpu) elements += static_cast<double>(tensor.elements());
  const auto count = static_cast<std::int64_t>(std::min(elements, 1e18));
  const double unit_bytes = elements * element_size(unit->dtype).value();
  const std::string_view family = row == nullptr ? std::string_view{} : row->rule.family;
  if (family == "reduction") {
    out.push_back({ReductionShape{static_cast<std::int64_t>(list.size()),
                                  count / std::max<std::int64_t>(static_cast<std::int64_t>(list.size()), 1)},
                   unit->dtype});
  } else if (family == "fill") {
    out.push_back({MovementShape{.kind = MovementKind::fill, .elements = count}, unit->dtype});
  } else if (family == "copy") {
    out.push_back({MovementShape{.kind = MovementKind::copy, .elements = count}, unit->dtype});
  } else {
    const bool arithmetic = family == "elementwise";
    const PointwiseRule* pointwise = arithmetic ? std::get_if<PointwiseRule>(&row->rule.details) : nullptr;
    const PointwiseRule of_each = pointwise == nullptr ? PointwiseRule{} : *pointwise;
    out.push_back(elementwise({.function = with_scalar(of_each.function, call, count),
                               .elements = count,
                               .reads = ratio(bytes_of(call.inputs), unit_bytes),
                               .flops_per_element = of_each.flops},
                              unit->dtype));
    // One list of tensors and a scalar.
    if (list.size() == call.inputs.size() && arithmetic) {
      FrameworkCall single = call;
      single.inputs = list.first(1);
      std::get<ElementwiseShape>(out.back().shape).function = with_scalar(of_each.function, single, count);
    }
  }
  return Ok{};
}

// All inputs read, all outputs written.
Status traffic_rule(const FrameworkCall& call, const Rule& rule, OperationList& out) {
  const TensorArgument* unit = largest(call);
  if (unit == nullptr) return missing(call, "no tensor with an element type");
  // In-place operators change their first tensor.
  const double written = call.outputs.empty() ? bytes_of(call.inputs.first(1)) : bytes_of(call.outputs);
  out.push_back({AmountShape{.flops = static_cast<double>(unit->elements()) *
                                      static_cast<double>(rule.as<TrafficRule>().flops),
                             .bytes_read = bytes_of(call.inputs),
                             .bytes_written = written,
                             .kernel_class = rule.as<TrafficRule>().kernel_class},
                 unit->dtype});
  return Ok{};
}

// Rows from the output, else from the dimensions argument.
Status reduction_rule(const FrameworkCall& call, const Rule& rule, OperationList& out) {
  STEPCAST_ASSIGN(const TensorArgument* x, need_tensor(call, 0, 0));
  // The maximum or minimum of two tensors is element-wise arithmetic.
  if (const TensorArgument* other = tensor_at(call, 1); other != nullptr && other->on_gpu)
    return pointwise_rule(
        call,
        {.run = pointwise_rule,
         .details = PointwiseRule{ElementwiseFunction::other, rule.as<ReductionRule>().flops}},
        out);
  const std::int64_t elements = x->elements();
  std::int64_t rows = 1;
  if (!call.outputs.empty()) {
    rows = call.outputs.front().elements();
  } else if (call.arguments.size() > 1) {
    // The dimensions that are not reduced.
    const auto reduced = [&](std::size_t dim) {
      const CallArgument& dims = call.arguments[1];
      const auto rank = static_cast<std::int64_t>(x->shape.size());
      const auto is = [&](std::int64_t d) {
        return (d < 0 ? d + rank : d) == static_cast<std::int64_t>(dim);
      };
      if (dims.kind == CallArgument::Kind::integer) return is(dims.integer);
      return dims.integers.empty() || std::ranges::any_of(dims.integers, is);
    };
    TensorArgument kept{.shape = {}, .dtype = x->dtype};
    for (std::size_t i = 0; i < x->shape.size(); ++i)
      if (!reduced(i)) kept.shape.push_back(x->shape[i]);
    rows = kept.elements();
  }
  rows = std::clamp<std::int64_t>(rows, 1, std::max<std::int64_t>(elements, 1));
  out.push_back({ReductionShape{rows, elements / rows}, x->dtype});
  return Ok{};
}

}  // namespace stepcast::detail
