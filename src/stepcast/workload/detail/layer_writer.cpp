#include "stepcast/workload/detail/layer_writer.h"

#include <algorithm>

#include "stepcast/base/number.h"
#include "stepcast/workload/detail/narrow_types.h"
#include "stepcast/workload/framework_behavior.h"

namespace stepcast::detail {
namespace {

// Number of parts into which Transformer Engine splits a GEMM to sum them over the tensor-parallel group one
// by one (num_splits of its userbuffer configurations).
constexpr std::int64_t kPartsOfReduction = 4;

// Where whole operators are counted (LayerChoices::operator_launches): launches per operator.
constexpr double kLaunchesOfOperator = 90;

// An operation that is known only by its bytes.
Operation amount(double bytes_read, double bytes_written, KernelClass kernel_class, DType dtype) {
  return {AmountShape{.bytes_read = bytes_read, .bytes_written = bytes_written, .kernel_class = kernel_class},
          dtype};
}

}  // namespace

LayerWriter::LayerWriter(const Transformer& model, const Layout& layout)
    : model_(model),
      layout_(layout),
      dtype_(is_narrow(layout.layer.precision.compute) ? layout.layer.precision.other
                                                       : layout.layer.precision.compute),
      element_bytes_(element_size(dtype_).value()),
      tp_(layout.degrees.tensor),
      cp_(layout.degrees.context),
      tokens_(layout.batch.micro_batch_sequences *
              share(layout.batch.seq_len_tokens, layout.degrees.context)),
      norm_tokens_(static_cast<double>(tokens_) /
                   (layout.layer.sequence_parallel ? static_cast<double>(layout.degrees.tensor) : 1.0)),
      heads_(share(model.n_heads, layout.degrees.tensor)),
      kv_heads_(share(model.kv_heads(), layout.degrees.tensor)),
      padded_vocab_(padded_vocab_size(model, layout)),
      predicted_tokens_(std::max<std::int64_t>(
          1, rounded(static_cast<double>(tokens_) * layout.layer.predicted_token_share))),
      frozen_(bytes_of(layout.layer.frozen_weights)) {}

bool LayerWriter::has_narrow_mixer(const LayerVariant& variant) const {
  const Precision& precision = layout_.layer.precision;
  return is_narrow(precision.compute) && precision.fp8.attention_linears && !variant.sixteen_bit;
}

bool LayerWriter::has_narrow_ffn(const LayerVariant& variant) const {
  const Precision& precision = layout_.layer.precision;
  return is_narrow(precision.compute) && precision.fp8.ffn_linears && !variant.sixteen_bit;
}

void LayerWriter::add_elementwise(WorkList& list, std::string_view name, ElementwiseFunction function,
                                  double elements, double reads, double writes, Direction direction) const {
  if (elements <= 0) return;
  list.push_back({name, Operation{ElementwiseShape{.function = function,
                                                   .elements = rounded(elements),
                                                   .reads = static_cast<float>(reads),
                                                   .writes = static_cast<float>(writes),
                                                   .inner = model_.hidden_size},
                                  dtype_, direction}});
}

void LayerWriter::add_norm(WorkList& list, std::string_view name, Direction direction, double tokens) const {
  list.push_back({name, norm({.kind = model_.norm,
                              .rows = rounded(tokens),
                              .cols = model_.hidden_size,
                              .fused = layout_.layer.fused.norm || layout_.layer.fused.compiled},
                             dtype_, direction)});
}

// Cost of quantising an operand in addition to its GEMM. The times of single GEMMs in fp8 include the cast of
// their first operand (docs/kernels.md); the cast included in the weight gradient covers the transposed
// copies that the other casts write. Only the reads of dynamic scaling to find the maximum remain. GEMMs of
// experts and weights are cast by separate kernels, into the operand and its transpose.
void LayerWriter::add_cast(WorkList& list, std::string_view name, double elements, bool in_product,
                           bool of_kernel) const {
  const Fp8Recipe& recipe = layout_.layer.precision.fp8;
  const bool dynamic = recipe.scaling == Fp8Scaling::dynamic && !(of_kernel && recipe.fused_maxima);
  const double reads = (dynamic ? 1 : 0) + (in_product ? 0 : 1);
  if (reads == 0) return;
  list.push_back({name, amount(elements * element_bytes_ * reads, in_product ? 0 : elements * 2,
                               KernelClass::elementwise, dtype_)});
  list.back().role = ItemRole::cast;
}

DType LayerWriter::narrow_type() const {
  if (layout_.layer.precision.compute != DType::fp8) return layout_.layer.precision.compute;
  return layout_.layer.precision.fp8.scaling == Fp8Scaling::blockwise ? DType::fp8_block : DType::fp8;
}

// One kernel per matrix of the framework.
void LayerWriter::add_dequantisation(WorkList& list, const Linear& linear) const {
  if (frozen_.stored <= 0) return;
  const std::int64_t matrices = adapted_projections(linear.role);
  const double weights = static_cast<double>(linear.n * linear.k) / static_cast<double>(matrices);
  list.push_back(
      {"dequantise_weight", amount(weights * frozen_.read, weights * (element_bytes_ + frozen_.written),
                                   KernelClass::elementwise, dtype_)});
  list.back().count = linear.experts * matrices;
  list.back().role = ItemRole::dequantise;
}

void LayerWriter::add_linear(WorkList& list, const Linear& linear) const {
  add_dequantisation(list, linear);
  const DType compute = linear.fp8 ? narrow_type() : dtype_;
  const auto experts = static_cast<double>(linear.experts);
  if (linear.fp8) {
    add_cast(list, "cast_input", experts * static_cast<double>(linear.tokens * linear.k), linear.experts == 1,
             linear.input_of_kernel);
    const Fp8Recipe& recipe = layout_.layer.precision.fp8;
    if (recipe.scaling != Fp8Scaling::delayed && !recipe.gather_weights)
      add_cast(list, "cast_weight", experts * static_cast<double>(linear.n * linear.k), false);
  }
  list.push_back({linear.name, gemm({.batch = linear.experts,
                                     .m = share(linear.tokens, linear.parts),
                                     .n = linear.n,
                                     .k = linear.k,
                                     .bias = linear.bias,
                                     .layout = GemmLayout::tn,
                                     .output = dtype_},
                                    compute)});
  list.back().count = linear.parts;
  list.back().role = linear.role;
  launch_as_one(list, linear.parts);
}

// The parts of a GEMM in Transformer Engine are one operator.
void LayerWriter::launch_as_one(WorkList& list, std::int64_t parts) const {
  if (parts > 1 && layout_.layer.operator_launches) list.back().captured = true;
}

void LayerWriter::add_weight_gradient(WorkList& list, const Linear& linear) const {
  const DType compute = linear.fp8 && layout_.layer.precision.fp8.weight_gradients ? narrow_type() : dtype_;
  const bool accumulates = layout_.layer.fused.weight_gradient_accumulation;
  WorkItem weight{linear.weight_gradient,
                  gemm({.batch = linear.experts,
                        .m = linear.n,
                        .n = linear.k,
                        .k = linear.tokens,
                        .accumulates = accumulates,
                        .layout = GemmLayout::nt,
                        .output = accumulates ? layout_.layer.precision.gradients : dtype_},
                       compute)};
  weight.weight_gradient = true;
  list.push_back(weight);
  if (!accumulates && layout_.accumulates_gradients()) {
    const double parameters = static_cast<double>(linear.experts) * static_cast<double>(linear.n * linear.k);
    const double gradient = element_size(layout_.layer.precision.gradients).value();
    list.push_back({"accumulate_gradient", amount(parameters * (element_bytes_ + gradient),
                                                  parameters * gradient, KernelClass::elementwise, dtype_)});
    list.back().weight_gradient = true;
  }
  if (linear.bias) {
    list.push_back(
        {linear.bias_gradient, Operation{ReductionShape{.rows = linear.n, .cols = linear.tokens}, dtype_}});
    list.back().count = linear.experts;
    list.back().weight_gradient = true;
  }
}

void LayerWriter::add_linear_gradients(WorkList& list, const Linear& linear, Edge edge) const {
  add_dequantisation(list, linear);
  const bool fp8 = linear.fp8;
  const DType compute = fp8 ? narrow_type() : dtype_;
  const auto experts = static_cast<double>(linear.experts);
  const bool split = tp_ > 1 && linear.experts == 1;
  // The gradient of the output of a row-split GEMM must first be complete on every rank.
  if (split && edge == Edge::row && layout_.layer.sequence_parallel)
    gather_tokens(list, "gather_output_gradient", layout_.layer.overlap.tensor_parallel, fp8);
  if (fp8) {
    add_cast(list, "cast_output_gradient", experts * static_cast<double>(linear.tokens * linear.n),
             linear.experts == 1, linear.gradient_of_kernel);
  }
  const bool asynchronous = layout_.layer.overlap.sequence_parallel_weight_gradient;
  // The weight gradient of a column-split GEMM needs the whole input again.
  const bool frozen = layout_.layer.frozen_base;
  if (split && edge == Edge::column && layout_.layer.sequence_parallel && !frozen)
    gather_tokens(list, "gather_input_again", asynchronous, fp8);
  // Without a weight gradient to overlap, the reduction of the parts is pipelined with the GEMM.
  const bool pipelined = frozen && split && edge == Edge::column && layout_.layer.sequence_parallel &&
                         layout_.layer.overlap.tensor_parallel;
  if (pipelined) add_part_of_reduction(list, "reduce_input_gradient", true);
  const std::int64_t parts = pipelined                    ? kPartsOfReduction
                             : split && edge == Edge::row ? parts_of_gathered()
                                                          : 1;
  list.push_back({linear.input_gradient, gemm({.batch = linear.experts,
                                               .m = share(linear.tokens, parts),
                                               .n = linear.k,
                                               .k = linear.n,
                                               .layout = GemmLayout::nn,
                                               .output = dtype_},
                                              compute)});
  list.back().count = parts;
  list.back().role = linear.role;
  launch_as_one(list, parts);
  add_adapter_gradients(list, linear, edge);
  if (pipelined)
    add_part_of_reduction(list, "reduce_input_gradient", false);
  else if (split && edge == Edge::column)
    reduce_tokens(list, "reduce_input_gradient", asynchronous && !frozen);
  if (frozen) return;
  add_weight_gradient(list, linear);
}

// With overlap of tensor-parallel transfers a GEMM starts with its first part: one of tp parts is exposed,
// the others overlap the GEMM.
void LayerWriter::add_overlapped(WorkList& list, std::string_view name, double message) const {
  constexpr CollectiveOp op = CollectiveOp::all_gather;
  const auto parts = static_cast<double>(tp_);
  list.push_back({name, Transfer{op, GroupKind::tensor, Bytes{message / parts}}});
  list.push_back({name, Transfer{op, GroupKind::tensor, Bytes{message * (parts - 1) / parts}}, 1, true});
}

void LayerWriter::gather_tokens(WorkList& list, std::string_view name, bool overlaps_next, bool fp8) const {
  if (tp_ == 1 || !layout_.layer.sequence_parallel) return;
  const double bytes = fp8 && layout_.layer.precision.fp8.gather_activations ? 1 : element_bytes_;
  const double message = static_cast<double>(tokens_ * model_.hidden_size) * bytes;
  if (layout_.layer.overlap.tensor_parallel && overlaps_next) return add_overlapped(list, name, message);
  list.push_back(
      {name, Transfer{CollectiveOp::all_gather, GroupKind::tensor, Bytes{message}}, 1, overlaps_next});
}

void LayerWriter::reduce_tokens(WorkList& list, std::string_view name, bool overlaps_next) const {
  if (tp_ == 1) return;
  const double message = static_cast<double>(tokens_ * model_.hidden_size) * element_bytes_;
  const CollectiveOp op =
      layout_.layer.sequence_parallel ? CollectiveOp::reduce_scatter : CollectiveOp::all_reduce;
  list.push_back({name, Transfer{op, GroupKind::tensor, Bytes{message}}, 1, overlaps_next});
}

std::int64_t LayerWriter::parts_of_gathered() const {
  return layout_.layer.overlap.tensor_parallel && layout_.layer.sequence_parallel ? tp_ : 1;
}

// Each part of the GEMM is reduced while the next one is computed; the last one is exposed.
void LayerWriter::add_part_of_reduction(WorkList& list, std::string_view name, bool beside) const {
  constexpr auto kParts = static_cast<double>(kPartsOfReduction);
  const double message = static_cast<double>(tokens_ * model_.hidden_size) * element_bytes_;
  const double part = beside ? (kParts - 1) / kParts : 1 / kParts;
  list.push_back(
      {name, Transfer{CollectiveOp::reduce_scatter, GroupKind::tensor, Bytes{message * part}}, 1, beside});
}

void LayerWriter::add_row_product(WorkList& list, Linear linear, std::string_view reduction) const {
  if (tp_ == 1 || reduction.empty() || !layout_.layer.sequence_parallel ||
      !layout_.layer.overlap.tensor_parallel) {
    add_linear(list, linear);
    add_adapter(list, linear, Edge::row);
    if (!reduction.empty()) reduce_tokens(list, reduction, false);
    return;
  }
  // The casts of the operand come first.
  linear.parts = kPartsOfReduction;
  WorkList product;
  add_linear(product, linear);
  list.insert(list.end(), product.begin(), product.end() - 1);
  add_part_of_reduction(list, reduction, true);
  list.push_back(product.back());
  add_adapter(list, linear, Edge::row);
  add_part_of_reduction(list, reduction, false);
}

void LayerWriter::residual(WorkList& list, Direction direction) const {
  if (model_.residual_streams > 1) return mix_streams(list, direction);
  const double elements = norm_tokens_ * static_cast<double>(model_.hidden_size);
  const bool dropout = model_.hidden_dropout > 0;
  if (direction == Direction::forward) {
    if (layout_.layer.fused.bias_dropout_add || layout_.layer.fused.compiled) {
      add_elementwise(list, "bias_dropout_add", ElementwiseFunction::residual_add, elements, 2,
                      dropout ? 1.5 : 1);
      return;
    }
    if (dropout) add_elementwise(list, "dropout", ElementwiseFunction::dropout, elements, 1, 1);
    add_elementwise(list, "residual_add", ElementwiseFunction::residual_add, elements, 2, 1);
    return;
  }
  if (dropout) {
    add_elementwise(list, "dropout_gradient", ElementwiseFunction::dropout, elements, 1, 1,
                    Direction::backward);
  }
  // The gradients of both branches of the residual are added.
  add_elementwise(list, "residual_gradient_add", ElementwiseFunction::residual_add, elements, 2, 1,
                  Direction::backward);
}

void LayerWriter::capture(WorkList& list, std::size_t first, bool captured) {
  for (std::size_t i = first; captured && i < list.size(); ++i) list[i].captured = true;
}

// A GEMM over all streams gives the weights of three mixes (into the part, of its result, and among the
// streams, normalised by iterations in one kernel); then the mixes are applied.
void LayerWriter::mix_streams(WorkList& list, Direction direction) const {
  const double streams = as_double(model_.residual_streams);
  const std::int64_t weights = (2 + model_.residual_streams) * model_.residual_streams;
  const double elements = norm_tokens_ * as_double(model_.hidden_size);
  const Linear product{.name = "stream_weights",
                       .input_gradient = "stream_weights_input_gradient",
                       .weight_gradient = "stream_weights_weight_gradient",
                       .tokens = rounded(norm_tokens_),
                       .n = weights,
                       .k = model_.residual_streams * model_.hidden_size};
  const double balanced = norm_tokens_ * as_double(weights);
  if (direction == Direction::forward) {
    add_linear(list, product);
    add_elementwise(list, "balance_streams", ElementwiseFunction::other, balanced, 1, 1);
    add_elementwise(list, "read_streams", ElementwiseFunction::other, elements, streams, 1);
    add_elementwise(list, "write_streams", ElementwiseFunction::other, elements, streams + 1, streams);
    return;
  }
  // Gradients of the streams, and of the weights from the streams.
  add_elementwise(list, "write_streams_gradient", ElementwiseFunction::other, elements, 2 * streams + 1,
                  streams + 1, direction);
  add_elementwise(list, "read_streams_gradient", ElementwiseFunction::other, elements, 2 * streams + 1,
                  streams, direction);
  add_elementwise(list, "balance_streams_gradient", ElementwiseFunction::other, balanced, 2, 1, direction);
  add_linear_gradients(list, product, Edge::none);
}

// An operation without GPU work: host work other than launching.
void LayerWriter::add_host_work(WorkList& list, std::string_view name, double launches) const {
  if (layout_.layer.operator_launches) launches = std::max(1.0, launches / kLaunchesOfOperator);
  if (launches < 1) return;
  list.push_back({name, Operation{AmountShape{.kernel_class = KernelClass::none}, dtype_}});
  list.back().count = rounded(launches);
}

}  // namespace stepcast::detail
