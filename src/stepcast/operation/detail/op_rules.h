// How the rows of tables/framework_ops.csv turn a call into operations: one function per group of operators that
// read their tensors alike. FLOPs per element are counted on the mathematical definition, a special function (exp, log,
// tanh, erf, a root, a quotient) as one.
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

// What the rules of a group need to know about an operator; `..._at`: positions in its signature.

enum class GemmForm : std::int8_t { mm, addmm, bmm, baddbmm, matmul, linear, mv, grouped, scaled, backward };
struct ProductRule {
  GemmForm form = GemmForm::mm;
};
struct ProductBackwardRule {
  bool bias = false;
};
// The orders in which convolutions take their arguments.
enum class ConvolutionForm : std::int8_t {
  framework,  // x, w, bias, stride, padding, dilation, [transposed, output padding,] groups
  cudnn,      // x, w, padding, stride, dilation, groups
  miopen,     // x, w, bias, padding, stride, dilation, groups
  depthwise,  // x, w, kernel size, bias, stride, padding, dilation; a group for each channel
  backward,   // dy, x, w, bias sizes, stride, padding, dilation, transposed, output padding, groups, mask
  cudnn_backward,  // x, dy, w, padding, stride, dilation, groups
};
struct ConvolutionRule {
  ConvolutionForm form = ConvolutionForm::framework;
};
enum class HeadLayout : std::int8_t { heads_first, tokens_first, packed };
struct AttentionRule {
  HeadLayout layout = HeadLayout::heads_first;
  int queries_at = 0;  // keys and values follow
  int causal_at = -1;  // the flag; -1: always causal
};
struct PointwiseRule {
  ElementwiseFunction function = ElementwiseFunction::other;
  float flops = 1;   // per element
  int operands = 0;  // backward: tensors that the forward read
};
struct TrafficRule {
  KernelClass kernel_class = KernelClass::other;
  float flops = 0;  // per element
};
struct ReductionRule {
  float flops = 1;  // per element
};
struct NormRule {
  NormKind kind = NormKind::layer_norm;
  int input_at = 0;
  int shape_at = -1;  // the normalized shape (layer and RMS norm) or the number of groups; -1: neither
};
struct SoftmaxRule {
  SoftmaxKind kind = SoftmaxKind::plain;
  int dim_at = -1;  // the dimension; -1: the last
};
struct CrossEntropyRule {
  bool fused = false;
};
struct MovementRule {
  MovementKind kind = MovementKind::copy;
  int values_at = -1;  // whose elements are moved; -1: the output's
  int index_at = -1;   // -1: the first tensor that can be an index
};
struct TransferRule {
  MemcpyKind kind = MemcpyKind::none;
};
struct TableRule {
  bool fused_update = false;
};
struct UpdateRule {
  OptimizerKind kind = OptimizerKind::adam;
};
enum class SparseForm : std::int8_t { matrix, sampled, compressed };
struct SparseRule {
  SparseForm form = SparseForm::matrix;
};
// The operators it calls do the work; what they are is not known from its own tensors.
struct WorksThroughOthers {};

struct Rule {
  using Function = Status (*)(const FrameworkCall& call, const Rule& rule, OperationList& out);
  using Details =
      std::variant<std::monostate, ProductRule, ProductBackwardRule, ConvolutionRule, AttentionRule,
                   PointwiseRule, TrafficRule, ReductionRule, NormRule, SoftmaxRule, CrossEntropyRule,
                   MovementRule, TransferRule, TableRule, UpdateRule, SparseRule, WorksThroughOthers>;
  Function run = nullptr;  // none: no work of its own
  std::string_view family;
  Direction direction = Direction::forward;
  Details details{};

  // The details of a rule that is known to have these: each function below is given its own kind.
  template <class T>
  [[nodiscard]] const T& as() const {
    return std::get<T>(details);
  }
  // 1 where the rule does not say.
  [[nodiscard]] float flops_per_element() const {
    if (const auto* pointwise = std::get_if<PointwiseRule>(&details)) return pointwise->flops;
    if (const auto* traffic = std::get_if<TrafficRule>(&details)) return traffic->flops;
    if (const auto* reduction = std::get_if<ReductionRule>(&details)) return reduction->flops;
    return 1;
  }
};

struct OpRow {
  std::string_view names;  // with ", " between them
  OpRole role;
  Rule rule;
};

// All rows of tables/framework_ops.csv.
[[nodiscard]] Result<std::vector<OpRow>> read_op_table();
// Finds the row for any spelling that role_of describes; nullptr: unknown.
[[nodiscard]] const OpRow* find_row(std::string_view name);
// The name without "autograd::engine::evaluate_function: ".
[[nodiscard]] std::string_view without_engine_prefix(std::string_view name);

// Reading calls ------------------------------------------------------------------------------------------

// The tensor at a position of the signature; nullptr: none, or not a tensor.
[[nodiscard]] const TensorArgument* tensor_at(const FrameworkCall& call, std::size_t position);
// The same, and it is on the GPU and has at least `dims` dimensions; an Error says what was expected.
[[nodiscard]] Result<const TensorArgument*> need_tensor(const FrameworkCall& call, std::size_t position,
                                                        std::size_t dims);
[[nodiscard]] std::span<const TensorArgument> tensors_at(const FrameworkCall& call, std::size_t position);
[[nodiscard]] std::int64_t integer_at(const FrameworkCall& call, std::size_t position,
                                      std::int64_t otherwise);
// Element `i` of the list at `position`; a list of one stands for all dimensions.
[[nodiscard]] std::int64_t list_item(const FrameworkCall& call, std::size_t position, std::size_t i,
                                     std::int64_t otherwise);
// Of a whole or a real number.
[[nodiscard]] double number_at(const FrameworkCall& call, std::size_t position, double otherwise);
[[nodiscard]] bool flag_at(const FrameworkCall& call, std::size_t position, bool otherwise);
[[nodiscard]] Error missing(const FrameworkCall& call, std::string what);

[[nodiscard]] double bytes_of(const TensorArgument& tensor);
// Of what is on the GPU, each piece of memory once.
[[nodiscard]] double bytes_of(std::span<const TensorArgument> tensors);
// The tensor on the GPU with the most elements, of the inputs, else of the outputs; nullptr: none.
[[nodiscard]] const TensorArgument* largest(const FrameworkCall& call);
// tf32 for fp32 where the call allows it.
[[nodiscard]] DType product_dtype(const FrameworkCall& call, DType dtype);

// Groups -------------------------------------------------------------------------------------------------

using RuleFunction = Status(const FrameworkCall& call, const Rule& rule, OperationList& out);
RuleFunction gemm_rule, linear_backward_rule, einsum_rule, convolution_rule, attention_rule;
RuleFunction pointwise_rule, pointwise_backward_rule, foreach_rule, traffic_rule, reduction_rule,
    fused_name_rule;
RuleFunction norm_rule, softmax_rule, cross_entropy_rule, nll_loss_rule;
RuleFunction copy_rule, clone_rule, movement_rule, to_host_rule, transfer_rule;
RuleFunction embedding_rule, embedding_bag_rule, table_batched_rule, optimizer_rule, sparse_rule;

// Rows of the table --------------------------------------------------------------------------------------

constexpr Rule nothing() { return {}; }
constexpr Rule calls_others() { return {.details = WorksThroughOthers{}}; }

constexpr Rule product(GemmForm form) {
  const bool batched = form == GemmForm::bmm || form == GemmForm::baddbmm || form == GemmForm::grouped;
  return {.run = gemm_rule, .family = batched ? "batched_gemm" : "gemm", .details = ProductRule{form}};
}
// dC, A and B at the first positions.
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
// `operands`: tensors that the forward read.
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
