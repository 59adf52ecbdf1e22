#include "stepcast/workload/detail/layer_lists.h"

#include <algorithm>
#include <cmath>

namespace stepcast::detail {
namespace {

std::int64_t rounded(double value) { return static_cast<std::int64_t>(std::llround(value)); }

std::int64_t share(std::int64_t whole, std::int64_t parts) {
  return std::max<std::int64_t>(1, (whole + parts - 1) / parts);
}

Operation amount(double bytes_read, double bytes_written, KernelClass kernel_class, DType dtype) {
  return {AmountShape{.bytes_read = bytes_read, .bytes_written = bytes_written, .kernel_class = kernel_class},
          dtype};
}

}  // namespace

LayerLists::LayerLists(const Transformer& model, const Layout& layout)
    : model_(model),
      layout_(layout),
      dtype_(layout.precision.compute == DType::fp8 ? layout.precision.other : layout.precision.compute),
      element_bytes_(element_size(dtype_).value()),
      tp_(layout.tensor_parallel),
      cp_(layout.context_parallel),
      tokens_(layout.micro_batch_sequences * share(layout.seq_len_tokens, layout.context_parallel)),
      norm_tokens_(static_cast<double>(tokens_) /
                   (layout.sequence_parallel ? static_cast<double>(layout.tensor_parallel) : 1.0)),
      heads_(share(model.n_heads, layout.tensor_parallel)),
      kv_heads_(share(model.kv_heads(), layout.tensor_parallel)),
      padded_vocab_(padded_vocab_size(model, layout)) {}

LayerVariant LayerLists::variant(std::int64_t layer, std::int64_t in_chunk) const {
  LayerVariant v;
  v.experts = model_.has_experts(layer);
  v.recomputed = is_recomputed(layout_, in_chunk);
  v.window_tokens = model_.window_tokens(layer);
  v.sixteen_bit = layout_.precision.compute == DType::fp8 &&
                  (layer < layout_.precision.fp8.first_layers ||
                   layer >= model_.n_layers - layout_.precision.fp8.last_layers);
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
                              .fused = layout_.fused.norm || layout_.fused.compiled},
                             dtype_, direction)});
}

// An fp8 operand and its transpose for the weight gradient; dynamic scaling reads once more for the maximum.
void LayerLists::add_cast(WorkList& list, std::string_view name, double elements) const {
  const bool delayed = layout_.precision.fp8.scaling == Fp8Scaling::delayed;
  list.push_back({name, amount(elements * element_bytes_ * (delayed ? 1 : 2), elements * 2,
                               KernelClass::elementwise, dtype_)});
}

void LayerLists::add_linear(WorkList& list, const Linear& linear) const {
  const DType compute = linear.fp8 ? DType::fp8 : dtype_;
  const auto experts = static_cast<double>(linear.experts);
  if (linear.fp8) {
    add_cast(list, "cast_input", experts * static_cast<double>(linear.tokens * linear.k));
    if (layout_.precision.fp8.scaling != Fp8Scaling::delayed) {
      add_cast(list, "cast_weight", experts * static_cast<double>(linear.n * linear.k));
    }
  }
  list.push_back({linear.name, gemm({.batch = linear.experts,
                                     .m = linear.tokens,
                                     .n = linear.n,
                                     .k = linear.k,
                                     .bias = linear.bias,
                                     .layout = GemmLayout::tn,
                                     .output = dtype_},
                                    compute)});
}

void LayerLists::add_linear_gradients(WorkList& list, const Linear& linear, Edge edge) const {
  const bool fp8 = linear.fp8;
  const DType compute = fp8 ? DType::fp8 : dtype_;
  const DType weight_compute = fp8 && layout_.precision.fp8.weight_gradients ? DType::fp8 : dtype_;
  const auto experts = static_cast<double>(linear.experts);
  const bool split = tp_ > 1 && linear.experts == 1;
  // The gradient of a row-split product's output has to be complete on every rank first.
  if (split && edge == Edge::row && layout_.sequence_parallel) {
    gather_tokens(list, "gather_output_gradient", layout_.overlap.tensor_parallel);
  }
  if (fp8) add_cast(list, "cast_output_gradient", experts * static_cast<double>(linear.tokens * linear.n));
  const bool asynchronous = layout_.overlap.sequence_parallel_weight_gradient;
  // The weight gradient of a column-split product needs the whole input again.
  if (split && edge == Edge::column && layout_.sequence_parallel) {
    gather_tokens(list, "gather_input_again", asynchronous);
  }
  list.push_back({linear.input_gradient, gemm({.batch = linear.experts,
                                               .m = linear.tokens,
                                               .n = linear.k,
                                               .k = linear.n,
                                               .layout = GemmLayout::nn,
                                               .output = dtype_},
                                              compute)});
  if (split && edge == Edge::column) reduce_tokens(list, "reduce_input_gradient", asynchronous);
  const bool accumulates = layout_.fused.weight_gradient_accumulation;
  WorkItem weight{linear.weight_gradient, gemm({.batch = linear.experts,
                                                .m = linear.n,
                                                .n = linear.k,
                                                .k = linear.tokens,
                                                .accumulates = accumulates,
                                                .layout = GemmLayout::nt,
                                                .output = accumulates ? layout_.precision.gradients : dtype_},
                                               weight_compute)};
  weight.weight_gradient = true;
  list.push_back(weight);
  if (!accumulates && layout_.sharding != Sharding::zero3 && layout_.micro_batches() > 1) {
    const double parameters = experts * static_cast<double>(linear.n * linear.k);
    const double gradient = element_size(layout_.precision.gradients).value();
    list.push_back({"accumulate_gradient", amount(parameters * (element_bytes_ + gradient),
                                                  parameters * gradient, KernelClass::elementwise, dtype_)});
    list.back().weight_gradient = true;
  }
  if (linear.bias) {
    list.push_back(
        {linear.bias_gradient, Operation{ReductionShape{.rows = linear.n, .cols = linear.tokens}, dtype_}});
    list.back().weight_gradient = true;
  }
}

// With overlap of tensor-parallel transfers a product starts on its first part: one of tp parts stays
// exposed, the others travel beside the product.
void LayerLists::add_overlapped(WorkList& list, std::string_view name, CollectiveOp op) const {
  const double message = static_cast<double>(tokens_ * model_.hidden_size) * element_bytes_;
  const auto parts = static_cast<double>(tp_);
  list.push_back({name, Transfer{op, GroupKind::tensor, Bytes{message / parts}}});
  list.push_back({name, Transfer{op, GroupKind::tensor, Bytes{message * (parts - 1) / parts}}, 1, true});
}

void LayerLists::gather_tokens(WorkList& list, std::string_view name, bool beside_next) const {
  if (tp_ == 1 || !layout_.sequence_parallel) return;
  if (layout_.overlap.tensor_parallel && beside_next) {
    return add_overlapped(list, name, CollectiveOp::all_gather);
  }
  const double message = static_cast<double>(tokens_ * model_.hidden_size) * element_bytes_;
  list.push_back(
      {name, Transfer{CollectiveOp::all_gather, GroupKind::tensor, Bytes{message}}, 1, beside_next});
}

void LayerLists::reduce_tokens(WorkList& list, std::string_view name, bool beside_next) const {
  if (tp_ == 1) return;
  const double message = static_cast<double>(tokens_ * model_.hidden_size) * element_bytes_;
  const CollectiveOp op = layout_.sequence_parallel ? CollectiveOp::reduce_scatter : CollectiveOp::all_reduce;
  list.push_back({name, Transfer{op, GroupKind::tensor, Bytes{message}}, 1, beside_next});
}

void LayerLists::residual(WorkList& list, Direction direction) const {
  const double elements = norm_tokens_ * static_cast<double>(model_.hidden_size);
  const bool dropout = model_.hidden_dropout > 0;
  if (direction == Direction::forward) {
    if (layout_.fused.bias_dropout_add || layout_.fused.compiled) {
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
  const bool fused = layout_.fused.bias_activation || layout_.fused.compiled;
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

// ------------------------------------------------------------------------------------------------- attention

double LayerLists::rotated_elements() const {
  if (model_.position != PositionEncoding::rotary) return 0;
  if (model_.latent_attention) {
    return static_cast<double>(tokens_ * (heads_ + 1) * model_.latent_attention->qk_rope_head_dim);
  }
  return static_cast<double>(tokens_ * (heads_ + kv_heads_) * model_.qk_head_dim()) * model_.rotary_fraction;
}

void LayerLists::add_rotary(WorkList& list, std::string_view name, Direction direction) const {
  const bool fused = layout_.fused.rotary || layout_.fused.compiled;
  list.push_back({name, elementwise({.function = fused ? ElementwiseFunction::rotary
                                                       : ElementwiseFunction::rotary_unfused,
                                     .elements = rounded(rotated_elements()),
                                     .inner = model_.qk_head_dim()},
                                    dtype_, direction)});
}

AttentionShape LayerLists::attention_shape(const LayerVariant& variant) const {
  AttentionShape shape;
  shape.batch = layout_.micro_batch_sequences;
  shape.query_length = shape.key_length = layout_.seq_len_tokens;
  shape.heads = heads_;
  shape.key_value_heads = model_.latent_attention ? heads_ : kv_heads_;
  shape.head_dim = model_.qk_head_dim();
  shape.value_head_dim = model_.value_head_dim();
  shape.causal = model_.architecture == Architecture::decoder;
  shape.window = variant.window_tokens;
  shape.kernel = layout_.attention_kernel;
  return shape;
}

void LayerLists::unfused_attention(WorkList& list, Direction direction) const {
  const std::int64_t batch = layout_.micro_batch_sequences * heads_, s = layout_.seq_len_tokens;
  const std::int64_t queries = share(s, cp_);
  const double scores = static_cast<double>(batch) * static_cast<double>(queries) * static_cast<double>(s);
  const double outputs = static_cast<double>(tokens_ * heads_ * model_.value_head_dim());
  const bool causal = model_.architecture == Architecture::decoder;
  const SoftmaxKind kind = causal && layout_.fused.softmax ? SoftmaxKind::causal_masked : SoftmaxKind::plain;
  const bool forward = direction == Direction::forward;
  const GemmShape by_keys{
      .batch = batch, .m = queries, .n = s, .k = model_.qk_head_dim(), .layout = GemmLayout::tn};
  const GemmShape by_values{
      .batch = batch, .m = queries, .n = model_.value_head_dim(), .k = s, .layout = GemmLayout::nn};
  const Operation softmax{SoftmaxShape{.kind = kind, .rows = batch * queries, .cols = s}, dtype_, direction};
  if (forward) {
    list.push_back({"scores", gemm(by_keys, dtype_)});
    if (!layout_.fused.softmax) {
      add_elementwise(list, "mask", ElementwiseFunction::masked_fill, scores, 1, 1);
    }
    list.push_back({"softmax", softmax});
    if (model_.attention_dropout > 0) {
      add_elementwise(list, "attention_dropout", ElementwiseFunction::dropout, scores, 1, 1);
    }
    list.push_back({"weighted_values", gemm(by_values, dtype_)});
    add_elementwise(list, "merge_heads", ElementwiseFunction::other, outputs, 1, 1);
    return;
  }
  add_elementwise(list, "split_heads_gradient", ElementwiseFunction::other, outputs, 1, 1);
  list.push_back({"weighted_values_gradient", gemm(by_values, dtype_, Direction::backward)});
  if (model_.attention_dropout > 0) {
    add_elementwise(list, "attention_dropout_gradient", ElementwiseFunction::dropout, scores, 1, 1,
                    Direction::backward);
  }
  list.push_back({"softmax_gradient", softmax});
  if (!layout_.fused.softmax) {
    add_elementwise(list, "mask_gradient", ElementwiseFunction::masked_fill, scores, 1, 1,
                    Direction::backward);
  }
  list.push_back({"scores_gradient", gemm(by_keys, dtype_, Direction::backward)});
}

// Keys and values go around while every rank works on those it has. Causal masks are balanced by giving
// every rank an early and a late part: one step on its own part, cp - 1 steps on half of the pairs.
void LayerLists::ring_attention(WorkList& list, const LayerVariant& variant, Direction direction) const {
  AttentionShape own = attention_shape(variant);
  own.query_length = own.key_length = share(layout_.seq_len_tokens, cp_);
  AttentionShape other = own;
  other.causal = false;
  if (own.causal) other.key_length = share(other.key_length, 2);
  const double key_values = static_cast<double>(tokens_ * own.key_value_heads) *
                            static_cast<double>(own.head_dim + model_.value_head_dim()) * element_bytes_;
  const bool forward = direction == Direction::forward;
  // Backward also carries the gradients of keys and values along.
  const Transfer step{CollectiveOp::send_receive, GroupKind::context, Bytes{key_values * (forward ? 1 : 2)}};
  const std::string_view name = forward ? "attention" : "attention_gradient";
  list.push_back({"exchange_keys_values", step, 1, true});
  list.push_back({name, attention(own, dtype_, direction)});
  for (std::int64_t i = 1; i < cp_; ++i) {
    if (i + 1 < cp_ || !forward) list.push_back({"exchange_keys_values", step, 1, true});
    list.push_back({name, attention(other, dtype_, direction)});
    // Partial results are merged by their softmax sums.
    if (forward) {
      add_elementwise(list, "merge_attention", ElementwiseFunction::add,
                      static_cast<double>(tokens_ * own.heads * model_.value_head_dim()), 2, 1);
    }
  }
}

void LayerLists::attention_core(WorkList& list, const LayerVariant& variant, Direction direction) const {
  const bool forward = direction == Direction::forward;
  const AttentionShape whole = attention_shape(variant);
  if (layout_.attention == AttentionMethod::unfused) return unfused_attention(list, direction);
  const std::string_view name = forward ? "attention" : "attention_gradient";
  if (cp_ == 1) {
    const std::int64_t inputs = tokens_ * (heads_ * model_.qk_head_dim() +
                                           kv_heads_ * (model_.qk_head_dim() + model_.value_head_dim()));
    const std::int64_t outputs = tokens_ * heads_ * model_.value_head_dim();
    const auto move = [&](std::string_view what, MovementKind kind, std::int64_t elements) {
      if (!layout_.attention_unpads) return;
      list.push_back({what, Operation{MovementShape{kind, elements, model_.hidden_size}, dtype_}});
    };
    if (forward) {
      move("unpad_inputs", MovementKind::gather, inputs);
    } else {
      move("unpad_output_gradient", MovementKind::gather, outputs);
    }
    list.push_back({name, attention(whole, dtype_, direction)});
    // Padded again: zeros, into which the values go; backward joins the three gradients.
    move(forward ? "zero_output" : "zero_input_gradients", MovementKind::fill, forward ? outputs : inputs);
    move(forward ? "pad_output" : "pad_input_gradients", MovementKind::scatter, forward ? outputs : inputs);
    if (!forward) move("join_gradients", MovementKind::concatenate, inputs);
    return;
  }
  switch (layout_.context_parallel_kind) {
    case ContextParallelKind::ring: return ring_attention(list, variant, direction);
    case ContextParallelKind::all_to_all: {
      AttentionShape heads_split = whole;
      heads_split.heads = share(whole.heads, cp_);
      heads_split.key_value_heads = share(whole.key_value_heads, cp_);
      const double projections =
          static_cast<double>(tokens_) *
          static_cast<double>(whole.heads * whole.head_dim +
                              whole.key_value_heads * (whole.head_dim + model_.value_head_dim()));
      const double outputs = static_cast<double>(tokens_ * whole.heads * model_.value_head_dim());
      const auto exchange = [&](std::string_view what, double elements) {
        list.push_back(
            {what, Transfer{CollectiveOp::all_to_all, GroupKind::context, Bytes{elements * element_bytes_}}});
      };
      exchange("sequence_to_heads", forward ? projections : outputs);
      list.push_back({name, attention(heads_split, dtype_, direction)});
      exchange("heads_to_sequence", forward ? outputs : projections);
      return;
    }
    case ContextParallelKind::all_gather: {
      AttentionShape queries_split = whole;
      queries_split.query_length = share(whole.query_length, cp_);
      queries_split.causal = false;
      // A balanced causal split leaves every rank half of the pairs.
      if (whole.causal) queries_split.key_length = share(whole.key_length, 2);
      const double key_values = static_cast<double>(tokens_ * cp_ * whole.key_value_heads) *
                                static_cast<double>(whole.head_dim + model_.value_head_dim()) *
                                element_bytes_;
      list.push_back(
          {"gather_keys_values", Transfer{CollectiveOp::all_gather, GroupKind::context, Bytes{key_values}}});
      list.push_back({name, attention(queries_split, dtype_, direction)});
      if (!forward) {
        list.push_back({"reduce_key_value_gradients",
                        Transfer{CollectiveOp::reduce_scatter, GroupKind::context, Bytes{key_values}}});
      }
      return;
    }
  }
}

void LayerLists::attention_forward(WorkList& list, const LayerVariant& variant) const {
  const bool fp8 = layout_.precision.compute == DType::fp8 && layout_.precision.fp8.attention_linears &&
                   !variant.sixteen_bit;
  const std::int64_t h = model_.hidden_size, t = tokens_;
  gather_tokens(list, "gather_attention_input", layout_.overlap.tensor_parallel);
  if (model_.latent_attention) {
    const LatentAttention& latent = *model_.latent_attention;
    const std::int64_t queries = heads_ * (latent.qk_nope_head_dim + latent.qk_rope_head_dim);
    if (latent.q_lora_rank > 0) {
      add_linear(list, {"query_down", {}, {}, {}, t, latent.q_lora_rank, h, false, fp8});
      list.push_back({"query_norm", norm({NormKind::rms_norm, t, latent.q_lora_rank}, dtype_)});
      add_linear(list, {"query_up", {}, {}, {}, t, queries, latent.q_lora_rank, false, fp8});
    } else {
      add_linear(list, {"query", {}, {}, {}, t, queries, h, false, fp8});
    }
    add_linear(
        list,
        {"key_value_down", {}, {}, {}, t, latent.kv_lora_rank + latent.qk_rope_head_dim, h, false, fp8});
    list.push_back({"key_value_norm", norm({NormKind::rms_norm, t, latent.kv_lora_rank}, dtype_)});
    add_linear(list, {"key_value_up",
                      {},
                      {},
                      {},
                      t,
                      heads_ * (latent.qk_nope_head_dim + latent.v_head_dim),
                      latent.kv_lora_rank,
                      false,
                      fp8});
    // Rotated and plain parts are put together.
    add_elementwise(list, "assemble_heads", ElementwiseFunction::other,
                    static_cast<double>(t * heads_ * (latent.qk_nope_head_dim + latent.qk_rope_head_dim) * 2),
                    1, 1);
  } else {
    const std::int64_t n = (heads_ + kv_heads_) * model_.qk_head_dim() + kv_heads_ * model_.value_head_dim();
    add_linear(list, {"qkv", {}, {}, {}, t, n, h, model_.qkv_bias, fp8});
  }
  const double queries_keys = static_cast<double>(t * (heads_ + kv_heads_) * model_.qk_head_dim());
  if (model_.qk_norm) {
    list.push_back({"query_key_norm",
                    norm({NormKind::rms_norm, t * (heads_ + kv_heads_), model_.qk_head_dim()}, dtype_)});
  }
  const double rotated = rotated_elements();
  if (rotated > 0) {
    add_rotary(list, "rotary", Direction::forward);
  } else if (layout_.attention == AttentionMethod::unfused) {
    add_elementwise(list, "split_heads", ElementwiseFunction::other, queries_keys, 1, 1);
  }
  attention_core(list, variant, Direction::forward);
  add_linear(list, {"attention_output",
                    {},
                    {},
                    {},
                    t,
                    h,
                    heads_ * model_.value_head_dim(),
                    model_.attention_output_bias && !layout_.fused.bias_dropout_add,
                    fp8});
  // A parallel residual adds both parts before their sum is reduced (GPT-NeoX): once, behind the FFN.
  if (!model_.parallel_residual) reduce_tokens(list, "reduce_attention_output", false);
}

void LayerLists::attention_backward(WorkList& list, const LayerVariant& variant) const {
  const bool fp8 = layout_.precision.compute == DType::fp8 && layout_.precision.fp8.attention_linears &&
                   !variant.sixteen_bit;
  const std::int64_t h = model_.hidden_size, t = tokens_;
  add_linear_gradients(list,
                       {{},
                        "attention_output_input_gradient",
                        "attention_output_weight_gradient",
                        "attention_output_bias_gradient",
                        t,
                        h,
                        heads_ * model_.value_head_dim(),
                        model_.attention_output_bias,
                        fp8},
                       model_.parallel_residual ? Edge::none : Edge::row);
  attention_core(list, variant, Direction::backward);
  const double rotated = rotated_elements();
  const double queries_keys = static_cast<double>(t * (heads_ + kv_heads_) * model_.qk_head_dim());
  if (rotated > 0) {
    add_rotary(list, "rotary_gradient", Direction::backward);
  } else if (layout_.attention == AttentionMethod::unfused) {
    add_elementwise(list, "merge_head_gradients", ElementwiseFunction::other, queries_keys, 1, 1);
  }
  if (model_.qk_norm) {
    list.push_back(
        {"query_key_norm_gradient", norm({NormKind::rms_norm, t * (heads_ + kv_heads_), model_.qk_head_dim()},
                                         dtype_, Direction::backward)});
  }
  if (model_.latent_attention) {
    const LatentAttention& latent = *model_.latent_attention;
    const std::int64_t queries = heads_ * (latent.qk_nope_head_dim + latent.qk_rope_head_dim);
    const auto gradients = [&](std::int64_t n, std::int64_t k, Edge edge) {
      add_linear_gradients(
          list, {{}, "latent_input_gradient", "latent_weight_gradient", {}, t, n, k, false, fp8}, edge);
    };
    add_elementwise(list, "split_heads_gradient", ElementwiseFunction::other,
                    static_cast<double>(t * queries * 2), 1, 1);
    gradients(heads_ * (latent.qk_nope_head_dim + latent.v_head_dim), latent.kv_lora_rank, Edge::none);
    list.push_back({"key_value_norm_gradient",
                    norm({NormKind::rms_norm, t, latent.kv_lora_rank}, dtype_, Direction::backward)});
    gradients(latent.kv_lora_rank + latent.qk_rope_head_dim, h, Edge::none);
    if (latent.q_lora_rank > 0) {
      gradients(queries, latent.q_lora_rank, Edge::none);
      list.push_back({"query_norm_gradient",
                      norm({NormKind::rms_norm, t, latent.q_lora_rank}, dtype_, Direction::backward)});
      gradients(latent.q_lora_rank, h, Edge::column);
    } else {
      gradients(queries, h, Edge::column);
    }
    return;
  }
  const std::int64_t n = (heads_ + kv_heads_) * model_.qk_head_dim() + kv_heads_ * model_.value_head_dim();
  add_linear_gradients(
      list,
      {{}, "qkv_input_gradient", "qkv_weight_gradient", "qkv_bias_gradient", t, n, h, model_.qkv_bias, fp8},
      Edge::column);
}

// ------------------------------------------------------------------------------------------ feed-forward
// part

void LayerLists::ffn_forward(WorkList& list, std::int64_t ffn, bool fp8, bool communicate) const {
  const std::int64_t h = model_.hidden_size, t = tokens_, width = share(ffn, tp_);
  if (communicate) gather_tokens(list, "gather_ffn_input", layout_.overlap.tensor_parallel);
  add_linear(list, {"ffn_up",
                    {},
                    {},
                    {},
                    t,
                    width * (model_.gated_ffn ? 2 : 1),
                    h,
                    model_.ffn_bias && !layout_.fused.bias_activation,
                    fp8});
  activation(list, static_cast<double>(t * width), Direction::forward);
  add_linear(list,
             {"ffn_down", {}, {}, {}, t, h, width, model_.ffn_bias && !layout_.fused.bias_dropout_add, fp8});
  if (communicate) reduce_tokens(list, "reduce_ffn_output", false);
}

void LayerLists::ffn_backward(WorkList& list, std::int64_t ffn, bool fp8, bool communicate) const {
  const std::int64_t h = model_.hidden_size, t = tokens_, width = share(ffn, tp_);
  add_linear_gradients(list,
                       {{},
                        "ffn_down_input_gradient",
                        "ffn_down_weight_gradient",
                        "ffn_down_bias_gradient",
                        t,
                        h,
                        width,
                        model_.ffn_bias,
                        fp8},
                       communicate ? Edge::row : Edge::none);
  activation(list, static_cast<double>(t * width), Direction::backward);
  add_linear_gradients(list,
                       {{},
                        "ffn_up_input_gradient",
                        "ffn_up_weight_gradient",
                        "ffn_up_bias_gradient",
                        t,
                        width * (model_.gated_ffn ? 2 : 1),
                        h,
                        model_.ffn_bias,
                        fp8},
                       communicate ? Edge::column : Edge::none);
}

// Tokens are copied once per expert they visit, travel to the ranks of these experts, and come back. The
// busiest rank, which everybody waits for, has `expert_imbalance` times the mean.
void LayerLists::experts_forward(WorkList& list, bool fp8) const {
  const MixtureOfExperts& moe = *model_.moe;
  const std::int64_t h = model_.hidden_size;
  const auto ep = layout_.expert_parallel, etp = layout_.expert_tensor_degree();
  // Without sequence parallelism the tokens of a tensor-parallel group are split among its ranks first.
  const double own = static_cast<double>(tokens_) / static_cast<double>(tp_);
  const double routed = own * static_cast<double>(moe.experts_per_token);
  const double busiest = routed * layout_.expert_imbalance;
  const double bytes = routed * static_cast<double>(h) * element_bytes_;
  add_linear(list, {"router", {}, {}, {}, rounded(own), moe.n_experts, h, false, false});
  list.push_back({"route", Operation{SoftmaxShape{SoftmaxKind::plain, rounded(own), moe.n_experts}, dtype_}});
  const auto move = [&](std::string_view name, MovementKind kind) {
    list.push_back(
        {name, Operation{MovementShape{kind, rounded(busiest * static_cast<double>(h)), h}, dtype_}});
  };
  const auto exchange = [&](std::string_view name) {
    if (ep > 1) {
      list.push_back(
          {name,
           Transfer{CollectiveOp::all_to_all, GroupKind::expert, Bytes{bytes * layout_.expert_imbalance}}, 1,
           layout_.overlap.expert});
    }
  };
  move("permute_tokens", MovementKind::gather);
  exchange("dispatch_tokens");
  if (etp > 1) {
    list.push_back({"gather_expert_tokens", Transfer{CollectiveOp::all_gather, GroupKind::tensor,
                                                     Bytes{bytes * static_cast<double>(etp)}}});
  }
  const std::int64_t local = share(moe.n_experts, ep);
  const std::int64_t per_expert =
      std::max<std::int64_t>(1, rounded(busiest * static_cast<double>(etp) / static_cast<double>(local)));
  const std::int64_t width = share(moe.expert_ffn_hidden_size, etp);
  add_linear(list,
             {"expert_up", {}, {}, {}, per_expert, width * (model_.gated_ffn ? 2 : 1), h, false, fp8, local});
  activation(list, static_cast<double>(per_expert * local * width), Direction::forward);
  add_linear(list, {"expert_down", {}, {}, {}, per_expert, h, width, false, fp8, local});
  if (etp > 1) {
    list.push_back({"reduce_expert_tokens", Transfer{CollectiveOp::reduce_scatter, GroupKind::tensor,
                                                     Bytes{bytes * static_cast<double>(etp)}}});
  }
  exchange("combine_tokens");
  move("unpermute_tokens", MovementKind::scatter);
  if (moe.n_shared_experts > 0) {
    ffn_forward(list, moe.n_shared_experts * moe.shared_ffn_hidden_size, fp8, tp_ > 1);
  }
}

void LayerLists::experts_backward(WorkList& list, bool fp8) const {
  const MixtureOfExperts& moe = *model_.moe;
  const std::int64_t h = model_.hidden_size;
  const auto ep = layout_.expert_parallel, etp = layout_.expert_tensor_degree();
  const double own = static_cast<double>(tokens_) / static_cast<double>(tp_);
  const double routed = own * static_cast<double>(moe.experts_per_token);
  const double busiest = routed * layout_.expert_imbalance;
  const double bytes = routed * static_cast<double>(h) * element_bytes_;
  if (moe.n_shared_experts > 0) {
    ffn_backward(list, moe.n_shared_experts * moe.shared_ffn_hidden_size, fp8, tp_ > 1);
  }
  const auto move = [&](std::string_view name, MovementKind kind) {
    list.push_back(
        {name, Operation{MovementShape{kind, rounded(busiest * static_cast<double>(h)), h}, dtype_}});
  };
  const auto exchange = [&](std::string_view name) {
    if (ep > 1) {
      list.push_back(
          {name,
           Transfer{CollectiveOp::all_to_all, GroupKind::expert, Bytes{bytes * layout_.expert_imbalance}}, 1,
           layout_.overlap.expert});
    }
  };
  move("unpermute_gradient", MovementKind::gather);
  exchange("dispatch_gradients");
  if (etp > 1) {
    list.push_back({"gather_expert_gradients", Transfer{CollectiveOp::all_gather, GroupKind::tensor,
                                                        Bytes{bytes * static_cast<double>(etp)}}});
  }
  const std::int64_t local = share(moe.n_experts, ep);
  const std::int64_t per_expert =
      std::max<std::int64_t>(1, rounded(busiest * static_cast<double>(etp) / static_cast<double>(local)));
  const std::int64_t width = share(moe.expert_ffn_hidden_size, etp);
  add_linear_gradients(list,
                       {{},
                        "expert_down_input_gradient",
                        "expert_down_weight_gradient",
                        {},
                        per_expert,
                        h,
                        width,
                        false,
                        fp8,
                        local},
                       Edge::none);
  activation(list, static_cast<double>(per_expert * local * width), Direction::backward);
  add_linear_gradients(list,
                       {{},
                        "expert_up_input_gradient",
                        "expert_up_weight_gradient",
                        {},
                        per_expert,
                        width * (model_.gated_ffn ? 2 : 1),
                        h,
                        false,
                        fp8,
                        local},
                       Edge::none);
  if (etp > 1) {
    list.push_back({"reduce_expert_gradients", Transfer{CollectiveOp::reduce_scatter, GroupKind::tensor,
                                                        Bytes{bytes * static_cast<double>(etp)}}});
  }
  exchange("return_gradients");
  move("permute_gradient", MovementKind::scatter);
  add_linear_gradients(list,
                       {{},
                        "router_input_gradient",
                        "router_weight_gradient",
                        {},
                        rounded(own),
                        moe.n_experts,
                        h,
                        false,
                        false},
                       Edge::none);
}

// ------------------------------------------------------------------------------------------------ whole
// layers

LayerWork LayerLists::layer(const LayerVariant& variant) const {
  const bool fp8_ffn =
      layout_.precision.compute == DType::fp8 && layout_.precision.fp8.ffn_linears && !variant.sixteen_bit;
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
  add_norm(forward, "attention_norm", Direction::forward, norm_tokens_);
  attention_forward(forward, variant);
  if (model_.norms_per_layer > 2) add_norm(forward, "post_attention_norm", Direction::forward, norm_tokens_);
  if (!model_.parallel_residual) residual(forward, Direction::forward);
  if (model_.norms_per_layer > 1) add_norm(forward, "ffn_norm", Direction::forward, norm_tokens_);
  feed_forward(forward, Direction::forward);
  if (model_.norms_per_layer > 3) add_norm(forward, "post_ffn_norm", Direction::forward, norm_tokens_);
  residual(forward, Direction::forward);

  WorkList& backward = work.backward;
  work.recomputed = variant.recomputed;
  if (variant.recomputed) {
    backward = forward;
  } else if (layout_.recompute == Recompute::selective && layout_.attention == AttentionMethod::unfused) {
    unfused_attention(backward, Direction::forward);
  } else if (layout_.recompute == Recompute::selective_ops) {
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
  if (model_.norms_per_layer > 3)
    add_norm(backward, "post_ffn_norm_gradient", Direction::backward, norm_tokens_);
  feed_forward(backward, Direction::backward);
  if (model_.norms_per_layer > 1) add_norm(backward, "ffn_norm_gradient", Direction::backward, norm_tokens_);
  residual(backward, Direction::backward);
  if (model_.norms_per_layer > 2) {
    add_norm(backward, "post_attention_norm_gradient", Direction::backward, norm_tokens_);
  }
  attention_backward(backward, variant);
  add_norm(backward, "attention_norm_gradient", Direction::backward, norm_tokens_);
  residual(backward, Direction::backward);

  std::int64_t example = 0;  // a layer of this kind
  while (example + 1 < model_.n_layers && model_.has_experts(example) != variant.experts) ++example;
  const ParameterCount count = layer_parameter_count(model_, example);
  const auto tp = static_cast<double>(tp_);
  work.dense_parameters = static_cast<double>(count.attention + count.ffn + count.shared_experts) / tp +
                          static_cast<double>(count.norms + count.router);
  work.expert_parameters =
      static_cast<double>(count.routed_experts) /
      static_cast<double>(layout_.expert_parallel * (variant.experts ? layout_.expert_tensor_degree() : 1));
  return work;
}

WorkList LayerLists::embedding(Direction direction) const {
  WorkList list;
  list.reserve(4);
  const double elements = static_cast<double>(tokens_ * model_.hidden_size);
  const bool forward = direction == Direction::forward;
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
  const std::int64_t h = model_.hidden_size, vocab = share(padded_vocab_, tp_);
  const bool fp8 = layout_.precision.compute == DType::fp8 && layout_.precision.fp8.logits;
  const Operation loss{
      CrossEntropyShape{tokens_, vocab, layout_.fused.cross_entropy || layout_.fused.compiled}, dtype_,
      direction};
  if (direction == Direction::forward) {
    if (model_.final_norm) add_norm(list, "final_norm", direction, norm_tokens_);
    if (model_.mlm_head) {
      add_linear(list, {"mlm_dense", {}, {}, {}, tokens_, h, h, true, false});
      activation(list, static_cast<double>(tokens_ * h), direction);
      add_norm(list, "mlm_norm", direction, static_cast<double>(tokens_));
    }
    gather_tokens(list, "gather_head_input", false);
    add_linear(list, {"logits", {}, {}, {}, tokens_, vocab, h, model_.head_bias, fp8});
    list.push_back({"cross_entropy", loss});
    if (tp_ > 1) {
      // Maximum, predicted logit and sum of exponentials of every token, in fp32.
      list.push_back(
          {"reduce_loss",
           Transfer{CollectiveOp::all_reduce, GroupKind::tensor, Bytes{static_cast<double>(tokens_) * 4}},
           3});
    }
    return list;
  }
  list.push_back({"cross_entropy_gradient", loss});
  add_linear_gradients(list,
                       {{},
                        "logits_input_gradient",
                        "logits_weight_gradient",
                        "logits_bias_gradient",
                        tokens_,
                        vocab,
                        h,
                        model_.head_bias,
                        fp8},
                       Edge::column);
  if (model_.mlm_head) {
    add_norm(list, "mlm_norm_gradient", direction, static_cast<double>(tokens_));
    activation(list, static_cast<double>(tokens_ * h), direction);
    add_linear_gradients(
        list, {{}, "mlm_dense_input_gradient", "mlm_dense_weight_gradient", {}, tokens_, h, h, true, false},
        Edge::none);
  }
  if (model_.final_norm) add_norm(list, "final_norm_gradient", direction, norm_tokens_);
  return list;
}

double LayerLists::word_embedding_parameters() const {
  return static_cast<double>(share(padded_vocab_, tp_)) * static_cast<double>(model_.hidden_size);
}

double LayerLists::embedding_parameters() const {
  const ParameterCount count = embedding_parameter_count(model_);
  return word_embedding_parameters() + static_cast<double>(count.position_embedding + count.norms);
}

double LayerLists::head_parameters() const {
  const ParameterCount count = head_parameter_count(model_);
  double parameters = static_cast<double>(count.norms);
  if (!model_.tied_embeddings) parameters += word_embedding_parameters();
  return parameters;
}

Bytes LayerLists::boundary() const {
  double bytes = static_cast<double>(tokens_ * model_.hidden_size) * element_bytes_;
  // Sequence parallelism and scatter-gather send 1/tp of the tokens from every rank.
  if (layout_.sequence_parallel || layout_.p2p_scatter_gather) bytes /= static_cast<double>(tp_);
  return Bytes{bytes};
}

}  // namespace stepcast::detail
