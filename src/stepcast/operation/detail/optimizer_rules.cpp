// Optimizer steps and sparse GEMMs.
#include <algorithm>

#include "stepcast/operation/detail/op_rules.h"

namespace stepcast::detail {

// aten::_fused_adam_(weights, gradients, moments..., steps, ...): lists of tensors.
Status optimizer_rule(const FrameworkCall& call, const Rule& rule, OperationList& out) {
  const std::span<const TensorArgument> weights = tensors_at(call, 0);
  const std::span<const TensorArgument> gradients = tensors_at(call, 1);
  if (weights.empty() || gradients.empty()) return missing(call, "no lists of weights and gradients");
  double parameters = 0;
  for (const TensorArgument& tensor : weights) parameters += static_cast<double>(tensor.elements());
  if (parameters < 1) return Ok{};
  // Everything is read; everything except the gradients is written.
  const double read = bytes_of(call.inputs);
  const double written = read - bytes_of(gradients);
  out.push_back({OptimizerShape{.kind = rule.as<UpdateRule>().kind,
                                .parameters = static_cast<std::int64_t>(std::min(parameters, 1e18)),
                                .tensors = static_cast<std::int64_t>(weights.size()),
                                .bytes_read_per_parameter = static_cast<float>(read / parameters),
                                .bytes_written_per_parameter = static_cast<float>(written / parameters)},
                 weights.front().dtype});
  return Ok{};
}

// The number of nonzeros is that of the stored values where the operator takes them, else the first integer
// argument. A real number after it is the reuse of rows.
Status sparse_rule(const FrameworkCall& call, const Rule& rule, OperationList& out) {
  const SparseForm form = rule.as<SparseRule>().form;
  SparseShape shape;
  DType dtype = DType::unknown;
  if (form == SparseForm::compressed) {
    // (row?, rowptr, col, value?, ..., dense): the dense matrix comes last, the longest index lists the
    // entries, the shortest the rows.
    const TensorArgument* dense = nullptr;
    std::int64_t entries = 0, starts = 0;
    for (const TensorArgument& tensor : call.inputs) {
      if (tensor.shape.size() == 2) dense = &tensor;
      if (tensor.shape.size() != 1 || tensor.dtype != DType::int64) continue;
      entries = std::max(entries, tensor.shape[0]);
      if (starts == 0) starts = tensor.shape[0];
      starts = std::min(starts, tensor.shape[0]);
    }
    if (dense == nullptr || entries == 0)
      return missing(call, "needs row starts, columns and a dense matrix");
    shape = {.rows = call.outputs.empty() || call.outputs.front().shape.empty()
                         ? std::max<std::int64_t>(starts - 1, 0)
                         : call.outputs.front().shape[0],
             .inner = dense->shape[0],
             .cols = dense->shape[1],
             .nonzeros = static_cast<double>(entries)};
    dtype = dense->dtype;
  } else {
    const std::size_t at = form == SparseForm::sampled ? 1 : 0;
    STEPCAST_ASSIGN(const TensorArgument* left, need_tensor(call, at, 2));
    STEPCAST_ASSIGN(const TensorArgument* right, need_tensor(call, at + 1, 2));
    shape = {.rows = left->shape[0], .inner = right->shape[0], .cols = right->shape[1]};
    dtype = right->dtype;
    for (const CallArgument& argument : call.arguments)
      if (argument.kind == CallArgument::Kind::integer && shape.nonzeros <= 0)
        shape.nonzeros = static_cast<double>(argument.integer);
    if (shape.nonzeros <= 0) return missing(call, "the number of nonzeros is not recorded");
    if (at == 1) {
      // Only the dot products at the nonzeros of the first matrix are computed: rows and columns are both
      // dense operands, and each nonzero takes `inner` multiply-adds.
      shape = {.rows = left->shape[0],
               .inner = right->shape[1],
               .cols = left->shape[1],
               .nonzeros = shape.nonzeros};
    }
  }
  for (const CallArgument& argument : call.arguments)
    if (argument.kind == CallArgument::Kind::real && shape.reuse <= 0)
      shape.reuse = std::max(argument.real, 0.0);
  out.push_back({shape, dtype});
  return Ok{};
}

}  // namespace stepcast::detail
