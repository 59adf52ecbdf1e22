#include "stepcast/workload/detail/layer_lists.h"

#include <algorithm>
#include <cmath>

#include "stepcast/workload/detail/narrow_types.h"
#include "stepcast/workload/framework_habits.h"

namespace stepcast::detail {
namespace {

// Transformer Engine cuts a product into this many parts to sum them over the tensor-parallel group one by one
// (num_splits of its userbuffer configurations).
constexpr std::int64_t kPartsOfReduction = 4;

// What the host does for the attention of an eager layer with experts besides launching its kernels, in launches.
// docs/constants.md says how they were chosen.
constexpr double kHostOfAttention = 150, kHostOfAttentionGradient = 210;

Operation amount(double bytes_read, double bytes_written, KernelClass kernel_class, DType dtype) {
  return {AmountShape{.bytes_read = bytes_read, .bytes_written = bytes_written, .kernel_class = kernel_class},
          dtype};
}

// Moves the weight gradients, for which the next stage does not wait, into a list of their own.
void hold_back_weight_gradients(LayerWork& layer) {
  const auto first = std::stable_partition(layer.backward.begin(), layer.backward.end(),
                                           [](const WorkItem& item) { return !item.weight_gradient; });
  layer.held_back.assign(first, layer.backward.end());
  layer.backward.erase(first, layer.backward.end());
}

}  // namespace

LayerLists::LayerLists(const Transformer& model, const Layout& layout)
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
          1, rounded(static_cast<double>(tokens_) * layout.layer.predicted_token_share))) {}

LayerVariant LayerLists::variant(std::int64_t layer, std::int64_t in_chunk) const {
  LayerVariant v;
  v.experts = model_.has_experts(layer);
  v.recomputed = is_recomputed(layout_, in_chunk);
  v.holds_back_weight_gradients = layout_.pipeline.schedule == PipelineSchedule::zero_bubble_h1;
  v.window_tokens = model_.window_tokens(layer);
  v.sixteen_bit = is_narrow(layout_.layer.precision.compute) &&
                  (layer < layout_.layer.precision.fp8.first_layers ||
                   layer >= model_.n_layers - layout_.layer.precision.fp8.last_layers);
  return v;
}

// ------------------------------------------------------------------------------------------- building blocks

void LayerLists::add_elementwise(WorkList& list, std::string_view name, ElementwiseFunction function,
                                 double elements, double reads, double writes, Direction direction) const {
  if (elements <= 0) return;
  list.push_back({name, Operation{ElementwiseShape{.function = function,
                                                   .elements = rounded(elements),
                                                   .reads = static_cast<float>(reads),
                                                   .writes = static_cast<float>(writes),
                                                   .inner = model_.hidden_size},
                                  dtype_, direction}});
}

void LayerLists::add_norm(WorkList& list, std::string_view name, Direction direction, double tokens) const {
  list.push_back({name, norm({.kind = model_.norm,
                              .rows = rounded(tokens),
                              .cols = model_.hidden_size,
                              .fused = layout_.layer.fused.norm || layout_.layer.fused.compiled},
                             dtype_, direction)});
}

// What quantising an operand costs beside its product. The times of single products in fp8 hold the cast of
// their first operand (docs/kernels.md); that of the weight gradient stands for the transposed copies that the
// other casts write. Left is what dynamic scaling reads to find the maximum. Products of experts and weights are
// cast by kernels of their own, into the operand and its transpose.
void LayerLists::add_cast(WorkList& list, std::string_view name, double elements, bool in_product,
                          bool of_kernel) const {
  const Fp8Recipe& recipe = layout_.layer.precision.fp8;
  const bool dynamic = recipe.scaling == Fp8Scaling::dynamic && !(of_kernel && recipe.fused_maxima);
  const double reads = (dynamic ? 1 : 0) + (in_product ? 0 : 1);
  if (reads == 0) return;
  list.push_back({name, amount(elements * element_bytes_ * reads, in_product ? 0 : elements * 2,
                               KernelClass::elementwise, dtype_)});
}

DType LayerLists::narrow_type() const {
  if (layout_.layer.precision.compute != DType::fp8) return layout_.layer.precision.compute;
  return layout_.layer.precision.fp8.scaling == Fp8Scaling::blockwise ? DType::fp8_block : DType::fp8;
}

void LayerLists::add_linear(WorkList& list, const Linear& linear) const {
  const DType compute = linear.fp8 ? narrow_type() : dtype_;
  const auto experts = static_cast<double>(linear.experts);
  if (linear.fp8) {
    add_cast(list, "cast_input", experts * static_cast<double>(linear.tokens * linear.k), linear.experts == 1,
             linear.input_of_kernel);
    const Fp8Recipe& recipe = layout_.layer.precision.fp8;
    if (recipe.scaling != Fp8Scaling::delayed && !recipe.gather_weights) {
      add_cast(list, "cast_weight", experts * static_cast<double>(linear.n * linear.k), false);
    }
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
}

void LayerLists::add_linear_gradients(WorkList& list, const Linear& linear, Edge edge) const {
  const bool fp8 = linear.fp8;
  const DType compute = fp8 ? narrow_type() : dtype_;
  const DType weight_compute = fp8 && layout_.layer.precision.fp8.weight_gradients ? compute : dtype_;
  const auto experts = static_cast<double>(linear.experts);
  const bool split = tp_ > 1 && linear.experts == 1;
  // The gradient of a row-split product's output has to be complete on every rank first.
  if (split && edge == Edge::row && layout_.layer.sequence_parallel) {
    gather_tokens(list, "gather_output_gradient", layout_.layer.overlap.tensor_parallel, fp8);
  }
  if (fp8) {
    add_cast(list, "cast_output_gradient", experts * static_cast<double>(linear.tokens * linear.n),
             linear.experts == 1, linear.gradient_of_kernel);
  }
  const bool asynchronous = layout_.layer.overlap.sequence_parallel_weight_gradient;
  // The weight gradient of a column-split product needs the whole input again.
  const bool frozen = layout_.layer.frozen_base;
  if (split && edge == Edge::column && layout_.layer.sequence_parallel && !frozen) {
    gather_tokens(list, "gather_input_again", asynchronous, fp8);
  }
  // Without a weight gradient that the sum of the parts could run beside, it is pipelined with the product.
  const bool pipelined = frozen && split && edge == Edge::column && layout_.layer.sequence_parallel &&
                         layout_.layer.overlap.tensor_parallel;
  if (pipelined) add_part_of_reduction(list, "reduce_input_gradient", true);
  const std::int64_t parts = pipelined                                            ? kPartsOfReduction
                             : split && edge == Edge::row && !linear.name.empty() ? parts_of_gathered()
                                                                                  : 1;
  list.push_back({linear.input_gradient, gemm({.batch = linear.experts,
                                               .m = share(linear.tokens, parts),
                                               .n = linear.k,
                                               .k = linear.n,
                                               .layout = GemmLayout::nn,
                                               .output = dtype_},
                                              compute)});
  list.back().count = parts;
  add_adapter_gradients(list, linear, edge);
  if (pipelined) {
    add_part_of_reduction(list, "reduce_input_gradient", false);
  } else if (split && edge == Edge::column) {
    reduce_tokens(list, "reduce_input_gradient", asynchronous && !frozen);
  }
  if (frozen) return;
  const bool accumulates = layout_.layer.fused.weight_gradient_accumulation;
  WorkItem weight{linear.weight_gradient,
                  gemm({.batch = linear.experts,
                        .m = linear.n,
                        .n = linear.k,
                        .k = linear.tokens,
                        .accumulates = accumulates,
                        .layout = GemmLayout::nt,
                        .output = accumulates ? layout_.layer.precision.gradients : dtype_},
                       weight_compute)};
  weight.weight_gradient = true;
  list.push_back(weight);
  if (!accumulates && layout_.accumulates_gradients()) {
    const double parameters = experts * static_cast<double>(linear.n * linear.k);
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

// With overlap of tensor-parallel transfers a product starts on its first part: one of tp parts stays
// exposed, the others travel beside the product.
void LayerLists::add_overlapped(WorkList& list, std::string_view name, double message) const {
  constexpr CollectiveOp op = CollectiveOp::all_gather;
  const auto parts = static_cast<double>(tp_);
  list.push_back({name, Transfer{op, GroupKind::tensor, Bytes{message / parts}}});
  list.push_back({name, Transfer{op, GroupKind::tensor, Bytes{message * (parts - 1) / parts}}, 1, true});
}

void LayerLists::gather_tokens(WorkList& list, std::string_view name, bool beside_next, bool fp8) const {
  if (tp_ == 1 || !layout_.layer.sequence_parallel) return;
  const double bytes = fp8 && layout_.layer.precision.fp8.gather_activations ? 1 : element_bytes_;
  const double message = static_cast<double>(tokens_ * model_.hidden_size) * bytes;
  if (layout_.layer.overlap.tensor_parallel && beside_next) return add_overlapped(list, name, message);
  list.push_back(
      {name, Transfer{CollectiveOp::all_gather, GroupKind::tensor, Bytes{message}}, 1, beside_next});
}

void LayerLists::reduce_tokens(WorkList& list, std::string_view name, bool beside_next) const {
  if (tp_ == 1) return;
  const double message = static_cast<double>(tokens_ * model_.hidden_size) * element_bytes_;
  const CollectiveOp op =
      layout_.layer.sequence_parallel ? CollectiveOp::reduce_scatter : CollectiveOp::all_reduce;
  list.push_back({name, Transfer{op, GroupKind::tensor, Bytes{message}}, 1, beside_next});
}

std::int64_t LayerLists::parts_of_gathered() const {
  return layout_.layer.overlap.tensor_parallel && layout_.layer.sequence_parallel ? tp_ : 1;
}

// Each part of the product is reduced while the next one is computed: the last is exposed.
void LayerLists::add_part_of_reduction(WorkList& list, std::string_view name, bool beside) const {
  constexpr auto kParts = static_cast<double>(kPartsOfReduction);
  const double message = static_cast<double>(tokens_ * model_.hidden_size) * element_bytes_;
  const double part = beside ? (kParts - 1) / kParts : 1 / kParts;
  list.push_back(
      {name, Transfer{CollectiveOp::reduce_scatter, GroupKind::tensor, Bytes{message * part}}, 1, beside});
}

void LayerLists::add_row_product(WorkList& list, Linear linear, std::string_view reduction) const {
  if (tp_ == 1 || reduction.empty() || !layout_.layer.sequence_parallel ||
      !layout_.layer.overlap.tensor_parallel) {
    add_linear(list, linear);
    add_adapter(list, linear, Edge::row);
    if (!reduction.empty()) reduce_tokens(list, reduction, false);
    return;
  }
  // Casts of the operand come first.
  linear.parts = kPartsOfReduction;
  WorkList product;
  add_linear(product, linear);
  list.insert(list.end(), product.begin(), product.end() - 1);
  add_part_of_reduction(list, reduction, true);
  list.push_back(product.back());
  add_adapter(list, linear, Edge::row);
  add_part_of_reduction(list, reduction, false);
}

void LayerLists::residual(WorkList& list, Direction direction) const {
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
  // Both branches of the residual meet.
  add_elementwise(list, "residual_gradient_add", ElementwiseFunction::residual_add, elements, 2, 1,
                  Direction::backward);
}

void LayerLists::activation(WorkList& list, double elements, Direction direction) const {
  ElementwiseFunction function = ElementwiseFunction::gelu;
  switch (model_.activation) {
    case Activation::gelu: function = ElementwiseFunction::gelu; break;
    case Activation::relu: function = ElementwiseFunction::relu; break;
    case Activation::squared_relu: function = ElementwiseFunction::squared_relu; break;
    case Activation::silu: function = ElementwiseFunction::silu; break;
  }
  const bool fused = layout_.layer.fused.bias_activation || layout_.layer.fused.compiled;
  // GPT-OSS, which alone has sinks, clamps both factors and moves one by an offset.
  if (model_.gated_ffn && model_.attention_sinks && !layout_.layer.fused.compiled) {
    return clamped_activation(list, elements, direction);
  }
  if (model_.gated_ffn) {
    if (fused) {
      add_elementwise(list, "gated_activation", ElementwiseFunction::gated_silu, elements, 2, 1, direction);
      return;
    }
    add_elementwise(list, "activation", function, elements, 1, 1, direction);
    add_elementwise(list, "gate", ElementwiseFunction::multiply, elements, 2, 1, direction);
    return;
  }
  add_elementwise(list, "activation", function, elements, 1, 1, direction);
  if (!fused && model_.activation == Activation::squared_relu) {
    add_elementwise(list, "square", ElementwiseFunction::power_scalar, elements, 1, 1, direction);
  }
}

// -------------------------------------------------------------------------------------------- whole layers

LayerWork LayerLists::layer(const LayerVariant& variant) const {
  const bool fp8_ffn = is_narrow(layout_.layer.precision.compute) &&
                       layout_.layer.precision.fp8.ffn_linears && !variant.sixteen_bit;
  const auto feed_forward = [&](WorkList& list, Direction direction) {
    const bool forward = direction == Direction::forward;
    if (variant.experts) {
      forward ? experts_forward(list, fp8_ffn) : experts_backward(list, fp8_ffn);
      return;
    }
    const std::int64_t ffn = model_.ffn_hidden_size;
    forward ? ffn_forward(list, ffn, fp8_ffn, tp_ > 1) : ffn_backward(list, ffn, fp8_ffn, tp_ > 1);
  };
  LayerWork work;
  WorkList& forward = work.forward;
  // Room for nearly every layer: lists are written again for every layout that is asked for.
  forward.reserve(24);
  work.backward.reserve(variant.recomputed ? 56 : 32);
  const CudaGraphs& graphs = layout_.layer.cuda_graphs;
  const bool attention_captured = graphs.attention || graphs.full_iteration;
  const bool ffn_captured = graphs.full_iteration || (variant.experts ? graphs.experts : graphs.ffn);
  add_norm(forward, "attention_norm", Direction::forward, norm_tokens_);
  attention_forward(forward, variant);
  if (variant.experts) add_host_work(forward, "attention_on_host", kHostOfAttention);
  if (model_.norms_per_layer > 2) add_norm(forward, "post_attention_norm", Direction::forward, norm_tokens_);
  if (!model_.parallel_residual) residual(forward, Direction::forward);
  capture(forward, 0, attention_captured);
  const std::size_t ffn_begin = forward.size();
  if (model_.norms_per_layer > 1) add_norm(forward, "ffn_norm", Direction::forward, norm_tokens_);
  feed_forward(forward, Direction::forward);
  if (model_.norms_per_layer > 3) add_norm(forward, "post_ffn_norm", Direction::forward, norm_tokens_);
  residual(forward, Direction::forward);
  capture(forward, ffn_begin, ffn_captured);

  WorkList& backward = work.backward;
  work.recomputed = variant.recomputed;
  if (variant.recomputed) {
    backward = forward;
  } else if (layout_.layer.recompute.kind == Recompute::selective) {
    recompute_modules(backward, variant, fp8_ffn);
  } else if (layout_.layer.recompute.kind == Recompute::selective_ops) {
    // Results of attention and of every second product are kept: norms, activation and half of the products
    // run again.
    bool keep = true;
    for (const WorkItem& item : forward) {
      const Operation* operation = item.operation();
      if (operation == nullptr || std::holds_alternative<AttentionShape>(operation->shape)) continue;
      if (std::holds_alternative<GemmShape>(operation->shape)) {
        keep = !keep;
        if (!keep) continue;
      }
      backward.push_back(item);
    }
  }
  capture(backward, 0, attention_captured && ffn_captured);
  const std::size_t ffn_gradient_begin = backward.size();
  if (model_.norms_per_layer > 3)
    add_norm(backward, "post_ffn_norm_gradient", Direction::backward, norm_tokens_);
  feed_forward(backward, Direction::backward);
  if (model_.norms_per_layer > 1) add_norm(backward, "ffn_norm_gradient", Direction::backward, norm_tokens_);
  residual(backward, Direction::backward);
  capture(backward, ffn_gradient_begin, ffn_captured);
  const std::size_t attention_gradient_begin = backward.size();
  if (model_.norms_per_layer > 2) {
    add_norm(backward, "post_attention_norm_gradient", Direction::backward, norm_tokens_);
  }
  attention_backward(backward, variant);
  if (variant.experts) add_host_work(backward, "attention_gradient_on_host", kHostOfAttentionGradient);
  add_norm(backward, "attention_norm_gradient", Direction::backward, norm_tokens_);
  residual(backward, Direction::backward);
  capture(backward, attention_gradient_begin, attention_captured);

  if (variant.holds_back_weight_gradients) hold_back_weight_gradients(work);

  std::int64_t example = 0;  // a layer of this kind
  while (example + 1 < model_.n_layers && model_.has_experts(example) != variant.experts) ++example;
  const ParameterCount count = layer_parameter_count(model_, example);
  const auto tp = static_cast<double>(tp_);
  work.dense_parameters = static_cast<double>(count.attention + count.ffn + count.shared_experts) / tp +
                          static_cast<double>(count.norms + count.router);
  work.expert_parameters =
      static_cast<double>(count.routed_experts) /
      static_cast<double>(layout_.degrees.expert * (variant.experts ? layout_.expert_tensor_degree() : 1));
  if (layout_.layer.frozen_base) {
    work.trained_dense_parameters = adapter_parameters(variant.experts);
  } else {
    work.trained_dense_parameters = work.dense_parameters + adapter_parameters(variant.experts);
    work.trained_expert_parameters = work.expert_parameters;
  }
  work.dense_parameters += adapter_parameters(variant.experts);
  return work;
}

void LayerLists::capture(WorkList& list, std::size_t first, bool captured) {
  for (std::size_t i = first; captured && i < list.size(); ++i) list[i].captured = true;
}

void LayerLists::recompute_modules(WorkList& list, const LayerVariant& variant, bool fp8_ffn) const {
  const RecomputedModules& modules = layout_.layer.recompute.modules;
  if (modules.norms) {
    add_norm(list, "attention_norm", Direction::forward, norm_tokens_);
    if (model_.norms_per_layer > 1) add_norm(list, "ffn_norm", Direction::forward, norm_tokens_);
  }
  if (modules.latent_projections && model_.latent_attention) {
    latent_projections(list, is_narrow(layout_.layer.precision.compute) &&
                                 layout_.layer.precision.fp8.attention_linears && !variant.sixteen_bit);
  }
  if (modules.core_attention && !attention_is_fused(model_, layout_.layer)) {
    unfused_attention(list, Direction::forward);
  }
  if (!variant.experts) {
    if (modules.ffn) ffn_forward(list, model_.ffn_hidden_size, fp8_ffn, tp_ > 1);
    return;
  }
  const MixtureOfExperts& moe = *model_.moe;
  if (modules.experts) return experts_forward(list, fp8_ffn);
  if (modules.expert_activation) {
    const ExpertFlow flow = expert_flow();
    activation(list, static_cast<double>(flow.tokens_per_expert * flow.local_experts * flow.width),
               Direction::forward);
  }
  if (modules.shared_experts && moe.n_shared_experts > 0) {
    ffn_forward(list, moe.n_shared_experts * moe.shared_ffn_hidden_size, fp8_ffn, tp_ > 1);
  }
}

// ------------------------------------------------------------------------------------------------ adapters

bool LayerLists::has_adapter(std::string_view linear) const {
  const Adapters& adapters = layout_.layer.adapters;
  if (adapters.rank == 0) return false;
  return (adapters.qkv && linear == "qkv") || (adapters.attention_output && linear == "attention_output") ||
         (adapters.ffn_up && linear == "ffn_up") || (adapters.ffn_down && linear == "ffn_down");
}

// A rank's share of an adapter follows the product beside it: column-split ones split the rows of the second
// matrix, row-split ones the columns of the first. What travels in between is as wide as the rank; the result of
// a row-split one is exchanged, so that every rank has its tokens whole.
void LayerLists::add_adapter(WorkList& list, const Linear& linear, Edge edge) const {
  if (!has_adapter(linear.name)) return;
  const std::int64_t rank = layout_.layer.adapters.rank, t = linear.tokens;
  const Bytes narrow{static_cast<double>(t * rank) * element_bytes_};
  const auto product = [&](std::string_view name, std::int64_t n, std::int64_t k) {
    list.push_back(
        {name, gemm({.m = t, .n = n, .k = k, .layout = GemmLayout::tn, .output = dtype_}, dtype_)});
  };
  product("adapter_down", edge == Edge::column ? share(rank, tp_) : rank, linear.k);
  if (tp_ > 1) {
    const CollectiveOp op = edge == Edge::column ? CollectiveOp::all_gather : CollectiveOp::all_reduce;
    list.push_back({"share_adapter", Transfer{op, GroupKind::tensor, narrow}});
  }
  const std::int64_t n = edge == Edge::column ? linear.n : share(linear.n, tp_);
  product("adapter_up", n, rank);
  if (edge == Edge::row && tp_ > 1) {
    list.push_back({"exchange_adapter", Transfer{CollectiveOp::all_to_all, GroupKind::tensor,
                                                 Bytes{static_cast<double>(t * n) * element_bytes_}}});
  }
  add_elementwise(list, "adapter_add", ElementwiseFunction::add, static_cast<double>(t * n), 2, 1);
}

void LayerLists::add_adapter_gradients(WorkList& list, const Linear& linear, Edge edge) const {
  if (!has_adapter(linear.name)) return;
  const std::int64_t rank = layout_.layer.adapters.rank, t = linear.tokens;
  const Bytes narrow{static_cast<double>(t * rank) * element_bytes_};
  const auto product = [&](std::string_view name, std::int64_t m, std::int64_t n, std::int64_t k,
                           GemmLayout order) {
    list.push_back({name, gemm({.m = m, .n = n, .k = k, .layout = order, .output = dtype_}, dtype_)});
    list.back().weight_gradient = order == GemmLayout::nt;
  };
  const std::int64_t n = edge == Edge::column ? linear.n : share(linear.n, tp_);
  if (edge == Edge::row && tp_ > 1) {
    list.push_back(
        {"exchange_adapter_gradient", Transfer{CollectiveOp::all_to_all, GroupKind::tensor,
                                               Bytes{static_cast<double>(t * n) * element_bytes_}}});
  }
  product("adapter_up_input_gradient", t, rank, n, GemmLayout::nn);
  product("adapter_up_weight_gradient", n, rank, t, GemmLayout::nt);
  if (tp_ > 1) {
    const CollectiveOp op = edge == Edge::column ? CollectiveOp::reduce_scatter : CollectiveOp::all_reduce;
    list.push_back({"share_adapter_gradient", Transfer{op, GroupKind::tensor, narrow}});
  }
  const std::int64_t width = edge == Edge::column ? share(rank, tp_) : rank;
  product("adapter_down_weight_gradient", width, linear.k, t, GemmLayout::nt);
  product("adapter_down_input_gradient", t, linear.k, width, GemmLayout::nn);
  add_elementwise(list, "adapter_gradient_add", ElementwiseFunction::add, static_cast<double>(t * linear.k),
                  2, 1, Direction::backward);
}

// Of one rank and layer.
double LayerLists::adapter_parameters(bool experts) const {
  const Adapters& adapters = layout_.layer.adapters;
  if (adapters.rank == 0) return 0;
  const std::int64_t h = model_.hidden_size;
  const std::int64_t qkv = (heads_ + kv_heads_) * model_.qk_head_dim() + kv_heads_ * model_.value_head_dim();
  const std::int64_t ffn = share(model_.ffn_hidden_size, tp_);
  std::int64_t width = 0;
  if (adapters.qkv && !model_.latent_attention) width += share(h, tp_) + qkv;
  if (adapters.attention_output) width += heads_ * model_.value_head_dim() + share(h, tp_);
  if (adapters.ffn_up && !experts) width += share(h, tp_) + ffn * (model_.gated_ffn ? 2 : 1);
  if (adapters.ffn_down && !experts) width += ffn + share(h, tp_);
  return static_cast<double>(adapters.rank * width);
}

WorkList LayerLists::embedding(Direction direction) const {
  WorkList list;
  list.reserve(4);
  const double elements = static_cast<double>(tokens_ * model_.hidden_size);
  const bool forward = direction == Direction::forward;
  if (!forward && layout_.layer.frozen_base) return list;
  if (!forward && model_.hidden_dropout > 0) {
    add_elementwise(list, "embedding_dropout_gradient", ElementwiseFunction::dropout, elements, 1, 1,
                    Direction::backward);
  }
  list.push_back(
      {forward ? "embedding" : "embedding_gradient",
       Operation{LookupShape{.rows = share(padded_vocab_, tp_), .dim = model_.hidden_size, .bags = tokens_},
                 dtype_, direction}});
  if (!forward) return list;
  reduce_tokens(list, "reduce_embedding", false);
  if (model_.position == PositionEncoding::learned) {
    add_elementwise(list, "add_positions", ElementwiseFunction::add, elements, 2, 1);
  }
  if (model_.embedding_norm) add_norm(list, "embedding_norm", direction, static_cast<double>(tokens_));
  if (model_.hidden_dropout > 0) {
    add_elementwise(list, "embedding_dropout", ElementwiseFunction::dropout, elements, 1, 1);
  }
  return list;
}

WorkList LayerLists::head(Direction direction) const {
  WorkList list;
  list.reserve(8);
  const std::int64_t h = model_.hidden_size, vocab = share(padded_vocab_, tp_), t = predicted_tokens_;
  const bool fp8 = is_narrow(layout_.layer.precision.compute) && layout_.layer.precision.fp8.logits;
  const Operation loss{CrossEntropyShape{predicted_tokens_, vocab,
                                         layout_.layer.fused.cross_entropy || layout_.layer.fused.compiled},
                       dtype_, direction};
  if (direction == Direction::forward) {
    if (model_.final_norm) add_norm(list, "final_norm", direction, norm_tokens_);
    if (t < tokens_) {
      list.push_back({"choose_tokens", Operation{MovementShape{MovementKind::gather, t * h, h}, dtype_}});
    }
    if (model_.mlm_head) {
      add_linear(list, {"mlm_dense", {}, {}, {}, t, h, h, true, false});
      activation(list, static_cast<double>(t * h), direction);
      add_norm(list, "mlm_norm", direction, static_cast<double>(t));
    }
    gather_tokens(list, "gather_head_input", false);
    add_linear(list, {"logits", {}, {}, {}, t, vocab, h, model_.head_bias, fp8});
    list.push_back({"cross_entropy", loss});
    if (tp_ > 1) {
      // Maximum, predicted logit and sum of exponentials of every token, in fp32.
      list.push_back(
          {"reduce_loss",
           Transfer{CollectiveOp::all_reduce, GroupKind::tensor, Bytes{static_cast<double>(t) * 4}}, 3});
    }
    return list;
  }
  list.push_back({"cross_entropy_gradient", loss});
  add_linear_gradients(list,
                       {{},
                        "logits_input_gradient",
                        "logits_weight_gradient",
                        "logits_bias_gradient",
                        t,
                        vocab,
                        h,
                        model_.head_bias,
                        fp8},
                       Edge::column);
  if (model_.mlm_head) {
    add_norm(list, "mlm_norm_gradient", direction, static_cast<double>(t));
    activation(list, static_cast<double>(t * h), direction);
    add_linear_gradients(
        list, {{}, "mlm_dense_input_gradient", "mlm_dense_weight_gradient", {}, t, h, h, true, false},
        Edge::none);
  }
  if (t < tokens_) {
    list.push_back(
        {"choose_tokens_gradient", Operation{MovementShape{MovementKind::scatter, t * h, h}, dtype_}});
  }
  if (model_.final_norm) add_norm(list, "final_norm_gradient", direction, norm_tokens_);
  return list;
}

double LayerLists::word_embedding_parameters() const {
  return static_cast<double>(share(padded_vocab_, tp_)) * static_cast<double>(model_.hidden_size);
}

LayerWork LayerLists::embedding() const {
  const ParameterCount count = embedding_parameter_count(model_);
  LayerWork work;
  work.forward = embedding(Direction::forward);
  work.backward = embedding(Direction::backward);
  capture(work.forward, 0, layout_.layer.cuda_graphs.full_iteration);
  capture(work.backward, 0, layout_.layer.cuda_graphs.full_iteration);
  work.dense_parameters =
      word_embedding_parameters() + static_cast<double>(count.position_embedding + count.norms);
  work.trained_dense_parameters = layout_.layer.frozen_base ? 0 : work.dense_parameters;
  return work;
}

// A tied output matrix is the embedding's; where it lies on another stage, step_work() counts its copy.
LayerWork LayerLists::head() const {
  const ParameterCount count = head_parameter_count(model_);
  LayerWork work;
  work.forward = head(Direction::forward);
  work.backward = head(Direction::backward);
  capture(work.forward, 0, layout_.layer.cuda_graphs.full_iteration);
  capture(work.backward, 0, layout_.layer.cuda_graphs.full_iteration);
  work.dense_parameters = static_cast<double>(count.norms);
  if (!model_.tied_embeddings) work.dense_parameters += word_embedding_parameters();
  work.trained_dense_parameters = layout_.layer.frozen_base ? 0 : work.dense_parameters;
  return work;
}

Bytes LayerLists::boundary() const {
  double bytes = static_cast<double>(tokens_ * model_.hidden_size) * element_bytes_;
  // Sequence parallelism and scatter-gather send 1/tp of the tokens from every rank.
  if (layout_.layer.sequence_parallel || layout_.pipeline.p2p_scatter_gather)
    bytes /= static_cast<double>(tp_);
  return Bytes{bytes};
}

}  // namespace stepcast::detail
