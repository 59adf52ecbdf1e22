// Rules that turn calls of the operators in tables/framework_ops.csv into operations: one function per group
// of operators with the same arguments. FLOPs per element follow the mathematical definition; a special
// function (exp, log, tanh, erf, a root, a quotient) counts as one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "stepcast/base/result.h"
#include "stepcast/operation/detail/operation_names.h"
#include "stepcast/operation/framework_ops.h"

namespace stepcast::detail {

// Parameters of the rules, per group. `..._at`: positions in the signature of an operator.

enum class GemmForm : std::int8_t { mm, addmm, bmm, baddbmm, matmul, linear, mv, grouped, scaled, backward };
// GEMM operators.
struct ProductRule {
  GemmForm form = GemmForm::mm;
};
// Backward of a linear layer.
struct ProductBackwardRule {
  bool bias = false;
};
// The argument orders of convolutions.
enum class ConvolutionForm : std::int8_t {
  framework,  // x, w, bias, stride, padding, dilation, [transposed, output padding,] groups
  cudnn,      // x, w, padding, stride, dilation, groups
  miopen,     // x, w, bias, padding, stride, dilation, groups
  depthwise,  // x, w, kernel size, bias, stride, padding, dilation; one group per channel
  backward,   // dy, x, w, bias sizes, stride, padding, dilation, transposed, output padding, groups, mask
  cudnn_backward,  // x, dy, w, padding, stride, dilation, groups
};
struct ConvolutionRule {
  ConvolutionForm form = ConvolutionForm::framework;
};
// Order of the dimensions of queries, keys and values.
enum class HeadLayout : std::int8_t { heads_first, tokens_first, packed };
// Fused attention.
struct AttentionRule {
  HeadLayout layout = HeadLayout::heads_first;
  int queries_at = 0;  // position of queries; keys and values follow
  int causal_at = -1;  // position of the flag; -1: always causal
};
// Element-wise operators.
struct PointwiseRule {
  ElementwiseFunction function = ElementwiseFunction::other;
  float flops = 1;   // per element
  int operands = 0;  // backward: number of tensors that the forward read
};
// Operators priced by their memory traffic.
struct TrafficRule {
  KernelClass kernel_class = KernelClass::other;
  float flops = 0;  // per element
};
// Sums, means, maxima and similar.
struct ReductionRule {
  float flops = 1;  // per element
};
// Normalisations.
struct NormRule {
  NormKind kind = NormKind::layer_norm;
  int input_at = 0;
  // Position of the normalised shape (layer and RMS norm) or the number of groups; -1: neither.
  int shape_at = -1;
};
// Softmax.
struct SoftmaxRule {
  SoftmaxKind kind = SoftmaxKind::plain;
  int dim_at = -1;  // position of the dimension; -1: the last dimension
};
// Cross-entropy.
struct CrossEntropyRule {
  bool fused = false;
};
// Copies, gathers and scatters.
struct MovementRule {
  MovementKind kind = MovementKind::copy;
  int values_at = -1;  // position of the moved tensor; -1: the output
  int index_at = -1;   // position of the index; -1: the first tensor that may be one
};
// Copies by the copy engine.
struct TransferRule {
  MemcpyKind kind = MemcpyKind::none;
};
// Batched embedding tables.
struct TableRule {
  bool fused_update = false;
};
// Optimizer steps.
struct UpdateRule {
  OptimizerKind kind = OptimizerKind::adam;
};
// Sparse GEMM operators.
enum class SparseForm : std::int8_t { matrix, sampled, compressed };
struct SparseRule {
  SparseForm form = SparseForm::matrix;
};
// Only the operators that it calls do work, and its tensors do not determine it.
struct WorksThroughOthers {};

// The rule of a row.
struct Rule {
  using Function = Status (*)(const FrameworkCall& call, const Rule& rule, OperationList& out);
  using Details =
      std::variant<std::monostate, ProductRule, ProductBackwardRule, ConvolutionRule, AttentionRule,
                   PointwiseRule, TrafficRule, ReductionRule, NormRule, SoftmaxRule, CrossEntropyRule,
                   MovementRule, TransferRule, TableRule, UpdateRule, SparseRule, WorksThroughOthers>;
  Function run = nullptr;  // null: no work
  std::string_view family;
  Direction direction = Direction::forward;
  Details details{};

  // The parameters as the type of the group, which every rule function knows.
  template <class T>
  [[nodiscard]] const T& as() const {
    return std::get<T>(details);
  }
  // FLOPs per element; 1 where the rule does not state them.
  [[nodiscard]] float flops_per_element() const {
    if (const auto* pointwise = std::get_if<PointwiseRule>(&details)) return pointwise->flops;
    if (const auto* traffic = std::get_if<TrafficRule>(&details)) return traffic->flops;
    if (const auto* reduction = std::get_if<ReductionRule>(&details)) return reduction->flops;
    return 1;
  }
};

// A row of the table: operators with the same role and rule.
struct OpRow {
  std::string_view names;  // separated by ", "
  OpRole role;
  Rule rule;
};

// All rows of tables/framework_ops.csv. Error: an invalid role or rule, with its line.
[[nodiscard]] Result<std::vector<OpRow>> read_op_table();
// The row for any spelling that role_of() resolves; null: unknown.
[[nodiscard]] const OpRow* find_row(std::string_view name);
// The name without "autograd::engine::evaluate_function: ".
[[nodiscard]] std::string_view without_engine_prefix(std::string_view name);

// Reading calls ------------------------------------------------------------------------------------------

// The tensor at a position of the signature; null: missing, or not a tensor.
[[nodiscard]] const TensorArgument* tensor_at(const FrameworkCall& call, std::size_t position);
// The same with at least `dims` dimensions; an Error says what was expected.
[[nodiscard]] Result<const TensorArgument*> need_tensor(const FrameworkCall& call, std::size_t position,
                                                        std::size_t dims);
// The tensors of a list at a position; empty: missing.
[[nodiscard]] std::span<const TensorArgument> tensors_at(const FrameworkCall& call, std::size_t position);
// An integer at a position, else `otherwise`.
[[nodiscard]] std::int64_t integer_at(const FrameworkCall& call, std::size_t position,
                                      std::int64_t otherwise);
// Element `i` of the list at `position`; a list of one applies to all dimensions.
[[nodiscard]] std::int64_t list_item(const FrameworkCall& call, std::size_t position, std::size_t i,
                                     std::int64_t otherwise);
// An integer or real number at a position.
[[nodiscard]] double number_at(const FrameworkCall& call, std::size_t position, double otherwise);
// A boolean at a position, else `otherwise`.
[[nodiscard]] bool flag_at(const FrameworkCall& call, std::size_t position, bool otherwise);
// The error of a call without enough information.
[[nodiscard]] Error missing(const FrameworkCall& call, std::string what);

// Bytes of a tensor.
[[nodiscard]] double bytes_of(const TensorArgument& tensor);
// Bytes of the tensors on the GPU, counting each piece of memory once.
[[nodiscard]] double bytes_of(std::span<const TensorArgument> tensors);
// The tensor on the GPU with the most elements, among the inputs, else the outputs; null: none.
[[nodiscard]] const TensorArgument* largest(const FrameworkCall& call);
// Element type of a GEMM: tf32 for fp32 where the call allows it.
[[nodiscard]] DType product_dtype(const FrameworkCall& call, DType dtype);

// Groups -------------------------------------------------------------------------------------------------

// Rule functions, one per group.
using RuleFunction = Status(const FrameworkCall& call, const Rule& rule, OperationList& out);
RuleFunction gemm_rule, linear_backward_rule, einsum_rule, convolution_rule, attention_rule;
RuleFunction pointwise_rule, pointwise_backward_rule, foreach_rule, traffic_rule, reduction_rule,
    fused_name_rule;
RuleFunction norm_rule, softmax_rule, cross_entropy_rule, nll_loss_rule;
RuleFunction copy_rule, clone_rule, movement_rule, to_host_rule, transfer_rule;
RuleFunction embedding_rule, embedding_bag_rule, table_batched_rule, optimizer_rule, sparse_rule;

// Rows of the table --------------------------------------------------------------------------------------

// Functions of the rules in the table; their arguments there are in this order.
constexpr Rule nothing() { return {}; }
constexpr Rule calls_others() { return {.details = WorksThroughOthers{}}; }

constexpr Rule product(GemmForm form) {
  const bool batched = form == GemmForm::bmm || form == GemmForm::baddbmm || form == GemmForm::grouped;
  return {.run = gemm_rule, .family = batched ? "batched_gemm" : "gemm", .details = ProductRule{form}};
}
// dC, A and B are the first arguments.
constexpr Rule product_backward(bool bias) {
  return {.run = linear_backward_rule,
          .family = "gemm",
          .direction = Direction::backward,
          .details = ProductBackwardRule{bias}};
}
constexpr Rule einsum() { return {.run = einsum_rule, .family = "batched_gemm"}; }
constexpr Rule convolution(ConvolutionForm form) {
  const bool backward = form == ConvolutionForm::backward || form == ConvolutionForm::cudnn_backward;
  return {.run = convolution_rule,
          .family = "convolution",
          .direction = backward ? Direction::backward : Direction::forward,
          .details = ConvolutionRule{form}};
}
constexpr Rule attends(HeadLayout layout, int causal_at) {
  return {.run = attention_rule,
          .family = "attention",
          .details = AttentionRule{.layout = layout, .queries_at = 0, .causal_at = causal_at}};
}
constexpr Rule attends_backward(HeadLayout layout, int causal_at) {
  return {.run = attention_rule,
          .family = "attention",
          .direction = Direction::backward,
          .details = AttentionRule{.layout = layout, .queries_at = 1, .causal_at = causal_at}};
}

constexpr Rule pointwise(ElementwiseFunction function = ElementwiseFunction::other, float flops = 1) {
  return {.run = pointwise_rule,
          .family = family_of_elementwise(function),
          .details = PointwiseRule{function, flops}};
}
// `operands`: number of tensors that the forward read.
constexpr Rule pointwise_backward(ElementwiseFunction function = ElementwiseFunction::other, float flops = 1,
                                  int operands = 1) {
  return {.run = pointwise_backward_rule,
          .family = family_of_elementwise(function),
          .direction = Direction::backward,
          .details = PointwiseRule{function, flops, operands}};
}
constexpr Rule foreach_list() { return {.run = foreach_rule, .family = "elementwise"}; }
// Reads all inputs and writes all outputs once.
constexpr Rule traffic(KernelClass kernel_class, float flops = 0) {
  return {.run = traffic_rule, .family = "fused", .details = TrafficRule{kernel_class, flops}};
}
constexpr Rule reduces(float flops = 1) {
  return {.run = reduction_rule, .family = "reduction", .details = ReductionRule{flops}};
}
constexpr Rule fused_name() { return {.run = fused_name_rule, .family = "fused"}; }

constexpr Rule normalizes(NormKind kind, int shape_at = -1) {
  return {.run = norm_rule,
          .family = kNormNames[kind],
          .details = NormRule{.kind = kind, .input_at = 0, .shape_at = shape_at}};
}
constexpr Rule normalizes_backward(NormKind kind, int input_at, int shape_at = -1) {
  return {.run = norm_rule,
          .family = kNormNames[kind],
          .direction = Direction::backward,
          .details = NormRule{.kind = kind, .input_at = input_at, .shape_at = shape_at}};
}
constexpr Rule softmax(SoftmaxKind kind, Direction direction, int dim_at) {
  return {.run = softmax_rule,
          .family = kind == SoftmaxKind::causal_masked ? "causal_softmax" : "softmax",
          .direction = direction,
          .details = SoftmaxRule{kind, dim_at}};
}
constexpr Rule cross_entropy(bool fused, Direction direction = Direction::forward) {
  return {.run = cross_entropy_rule,
          .family = "cross_entropy",
          .direction = direction,
          .details = CrossEntropyRule{fused}};
}
constexpr Rule nll_loss(Direction direction) {
  return {.run = nll_loss_rule,
          .family = direction == Direction::forward ? "reduction" : "fill",
          .direction = direction};
}

constexpr Rule copies() { return {.run = copy_rule, .family = "copy"}; }
constexpr Rule clones() { return {.run = clone_rule, .family = "copy"}; }
constexpr Rule moves(MovementKind kind, int values_at = -1, int index_at = -1) {
  return {.run = movement_rule,
          .family = kMovementNames[kind],
          .details = MovementRule{.kind = kind, .values_at = values_at, .index_at = index_at}};
}
constexpr Rule to_host() { return {.run = to_host_rule, .family = "memcpy_d2h"}; }
constexpr Rule transfer(MemcpyKind kind) {
  return {.run = transfer_rule, .family = kTransferNames[kind], .details = TransferRule{kind}};
}

constexpr Rule embedding(Direction direction) {
  return {.run = embedding_rule, .family = "embedding_lookup", .direction = direction};
}
constexpr Rule embedding_bag(Direction direction) {
  return {.run = embedding_bag_rule, .family = "embedding_lookup", .direction = direction};
}
constexpr Rule table_batched(Direction direction, bool fused_update) {
  return {.run = table_batched_rule,
          .family = "embedding_lookup",
          .direction = direction,
          .details = TableRule{fused_update}};
}
constexpr Rule optimizer(OptimizerKind kind) {
  return {.run = optimizer_rule, .family = "optimizer", .details = UpdateRule{kind}};
}
constexpr Rule sparse(SparseForm form) {
  return {.run = sparse_rule, .family = "sparse", .details = SparseRule{form}};
}

}  // namespace stepcast::detail
