// Attention of one layer: projections, rotation, scores and values, by flash kernels or written out, with
// context parallelism and latent attention.
#include <algorithm>

#include "stepcast/workload/detail/layer_lists.h"
#include "stepcast/workload/detail/narrow_types.h"
#include "stepcast/workload/framework_behavior.h"

namespace stepcast::detail {

double LayerLists::rotated_elements() const {
  if (model_.position != PositionEncoding::rotary) return 0;
  if (model_.latent_attention)
    return static_cast<double>(tokens_ * (heads_ + 1) * model_.latent_attention->qk_rope_head_dim);
  return static_cast<double>(tokens_ * (heads_ + kv_heads_) * model_.qk_head_dim()) * model_.rotary_fraction;
}

void LayerLists::add_rotary(WorkList& list, std::string_view name, Direction direction) const {
  const bool fused = layout_.layer.fused.rotary || layout_.layer.fused.compiled;
  list.push_back({name, elementwise({.function = fused ? ElementwiseFunction::rotary
                                                       : ElementwiseFunction::rotary_unfused,
                                     .elements = rounded(rotated_elements()),
                                     .inner = model_.qk_head_dim()},
                                    dtype_, direction)});
  // Written out it is one more operator of the host, for which nothing but its launches is known elsewhere.
  if (!fused && layout_.layer.operator_launches) add_host_work(list, "rotary_on_host", 1);
}

AttentionShape LayerLists::attention_shape(const LayerVariant& variant) const {
  AttentionShape shape;
  shape.batch = layout_.batch.micro_batch_sequences;
  shape.query_length = shape.key_length = layout_.batch.seq_len_tokens;
  const double packed = layout_.layer.packed_mean_tokens;
  if (packed > 0 && packed < static_cast<double>(layout_.batch.seq_len_tokens)) {
    shape.query_length = shape.key_length = std::max<std::int64_t>(1, rounded(packed));
    shape.batch = std::max<std::int64_t>(
        1, rounded(static_cast<double>(shape.batch * layout_.batch.seq_len_tokens) / packed));
  }
  shape.heads = heads_;
  shape.key_value_heads = model_.latent_attention ? heads_ : kv_heads_;
  shape.head_dim = model_.qk_head_dim();
  shape.value_head_dim = model_.value_head_dim();
  shape.causal = model_.architecture == Architecture::decoder && model_.cross_tokens == 0;
  if (model_.cross_tokens > 0) shape.key_length = model_.cross_tokens;
  // Keys that were chosen are as many as those in a window, wherever they lie.
  shape.window = model_.sparse_indexer ? model_.sparse_indexer->keys_per_query : variant.window_tokens;
  if (const std::int64_t every = model_.compressed_tokens; model_.low_rank_attention && every > 0) {
    // Beside the window: those that were chosen, or, on average, half of all.
    const std::int64_t compressed = shape.key_length / every;
    shape.window =
        variant.window_tokens + (model_.sparse_indexer ? std::min(shape.window, compressed) : compressed / 2);
  }
  shape.kernel = layout_.layer.attention_kernel;
  return shape;
}

void LayerLists::unfused_attention(WorkList& list, Direction direction) const {
  const std::int64_t batch = layout_.batch.micro_batch_sequences * heads_;
  const std::int64_t s = model_.cross_tokens > 0 ? model_.cross_tokens : layout_.batch.seq_len_tokens;
  const std::int64_t queries = share(layout_.batch.seq_len_tokens, cp_);
  const double scores = static_cast<double>(batch) * static_cast<double>(queries) * static_cast<double>(s);
  const double outputs = static_cast<double>(tokens_ * heads_ * model_.value_head_dim());
  const bool causal = model_.architecture == Architecture::decoder;
  const SoftmaxKind kind =
      causal && layout_.layer.fused.softmax ? SoftmaxKind::causal_masked : SoftmaxKind::plain;
  const bool forward = direction == Direction::forward;
  const GemmShape by_keys{
      .batch = batch, .m = queries, .n = s, .k = model_.qk_head_dim(), .layout = GemmLayout::tn};
  const GemmShape by_values{
      .batch = batch, .m = queries, .n = model_.value_head_dim(), .k = s, .layout = GemmLayout::nn};
  const Operation softmax{SoftmaxShape{.kind = kind, .rows = batch * queries, .cols = s}, dtype_, direction};
  // Queries by the vectors of 2 s distances, shifted so that columns are keys again.
  const bool relative = model_.position == PositionEncoding::relative;
  const GemmShape by_distances{
      .batch = batch, .m = queries, .n = 2 * s, .k = model_.qk_head_dim(), .layout = GemmLayout::tn};
  if (forward) {
    list.push_back({"scores", gemm(by_keys, dtype_)});
    if (relative) {
      list.push_back({"distance_scores", gemm(by_distances, dtype_)});
      add_elementwise(list, "shift_distances", ElementwiseFunction::other, scores, 1, 1);
      add_elementwise(list, "add_distance_scores", ElementwiseFunction::add, scores, 2, 1);
      add_elementwise(list, "add_segment_scores", ElementwiseFunction::add, scores, 2, 1);
    }
    if (!layout_.layer.fused.softmax)
      add_elementwise(list, "mask", ElementwiseFunction::masked_fill, scores, 1, 1);
    list.push_back({"softmax", softmax});
    if (model_.attention_dropout > 0)
      add_elementwise(list, "attention_dropout", ElementwiseFunction::dropout, scores, 1, 1);
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
  if (!layout_.layer.fused.softmax) {
    add_elementwise(list, "mask_gradient", ElementwiseFunction::masked_fill, scores, 1, 1,
                    Direction::backward);
  }
  if (relative) {
    add_elementwise(list, "shift_distances_gradient", ElementwiseFunction::other, 2 * scores, 1, 1,
                    Direction::backward);
    list.push_back({"distance_scores_gradient", gemm(by_distances, dtype_, Direction::backward)});
  }
  list.push_back({"scores_gradient", gemm(by_keys, dtype_, Direction::backward)});
}

// Keys and values go around while every rank works on those it has. Causal masks are balanced by giving
// every rank an early and a late part: one step on its own part, cp - 1 steps on half of the pairs.
void LayerLists::ring_attention(WorkList& list, const LayerVariant& variant, Direction direction) const {
  AttentionShape own = attention_shape(variant);
  own.query_length = own.key_length = share(layout_.batch.seq_len_tokens, cp_);
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
  const auto attend = [&](const AttentionShape& shape) {
    list.push_back({name, attention(shape, dtype_, direction)});
    list.back().role = ItemRole::attention;
  };
  attend(own);
  for (std::int64_t i = 1; i < cp_; ++i) {
    if (i + 1 < cp_ || !forward) list.push_back({"exchange_keys_values", step, 1, true});
    attend(other);
    // Partial results are merged by their softmax sums.
    if (forward) {
      add_elementwise(list, "merge_attention", ElementwiseFunction::add,
                      static_cast<double>(tokens_ * own.heads * model_.value_head_dim()), 2, 1);
    }
  }
}

void LayerLists::attention_of_rank(WorkList& list, std::string_view name, const Operation& kernel) const {
  const bool forward = kernel.direction == Direction::forward;
  const std::int64_t inputs = tokens_ * (heads_ * model_.qk_head_dim() +
                                         kv_heads_ * (model_.qk_head_dim() + model_.value_head_dim()));
  const std::int64_t outputs = tokens_ * heads_ * model_.value_head_dim();
  const auto move = [&](std::string_view what, MovementKind kind, std::int64_t elements) {
    if (!layout_.layer.attention_unpads) return;
    list.push_back({what, Operation{MovementShape{kind, elements, model_.hidden_size}, dtype_}});
  };
  if (forward)
    move("unpad_inputs", MovementKind::gather, inputs);
  else
    move("unpad_output_gradient", MovementKind::gather, outputs);
  list.push_back({name, kernel});
  list.back().role = ItemRole::attention;
  // Padded again: zeros, into which the values go; backward joins the three gradients.
  move(forward ? "zero_output" : "zero_input_gradients", MovementKind::fill, forward ? outputs : inputs);
  move(forward ? "pad_output" : "pad_input_gradients", MovementKind::scatter, forward ? outputs : inputs);
  if (!forward) move("join_gradients", MovementKind::concatenate, inputs);
}

void LayerLists::attention_core(WorkList& list, const LayerVariant& variant, Direction direction) const {
  const bool forward = direction == Direction::forward;
  const bool fp8 = is_narrow(layout_.layer.precision.compute) && layout_.layer.precision.fp8.attention &&
                   !variant.sixteen_bit;
  const DType dtype = fp8 ? DType::fp8 : dtype_;
  const AttentionShape whole = attention_shape(variant);
  if (!attention_is_fused(model_, layout_.layer)) return unfused_attention(list, direction);
  const std::string_view name = forward ? "attention" : "attention_gradient";
  if (cp_ == 1) return attention_of_rank(list, name, attention(whole, dtype, direction));
  switch (layout_.layer.context_parallel_kind) {
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
      list.push_back({name, attention(heads_split, dtype, direction)});
      list.back().role = ItemRole::attention;
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
      list.push_back({name, attention(queries_split, dtype, direction)});
      list.back().role = ItemRole::attention;
      if (!forward) {
        list.push_back({"reduce_key_value_gradients",
                        Transfer{CollectiveOp::reduce_scatter, GroupKind::context, Bytes{key_values}}});
      }
      return;
    }
  }
}

void LayerLists::latent_inputs(WorkList& list, bool fp8) const {
  const LatentAttention& latent = *model_.latent_attention;
  if (latent.q_lora_rank > 0) {
    add_linear(list, {"query_down", {}, {}, {}, tokens_, latent.q_lora_rank, model_.hidden_size, false, fp8});
  } else {
    const std::int64_t queries = heads_ * (latent.qk_nope_head_dim + latent.qk_rope_head_dim);
    add_linear(list, {"query", {}, {}, {}, tokens_, queries, model_.hidden_size, false, fp8});
  }
  add_linear(list, {"key_value_down",
                    {},
                    {},
                    {},
                    tokens_,
                    latent.kv_lora_rank + latent.qk_rope_head_dim,
                    model_.hidden_size,
                    false,
                    fp8});
  latent_projections(list, fp8);
  if (model_.attention_output_gate) add_linear(list, latent_gate(fp8));
}

void LayerLists::attention_forward(WorkList& list, const LayerVariant& variant) const {
  const bool fp8 = is_narrow(layout_.layer.precision.compute) &&
                   layout_.layer.precision.fp8.attention_linears && !variant.sixteen_bit;
  const std::int64_t h = model_.hidden_size, t = tokens_;
  gather_tokens(list, "gather_attention_input", layout_.layer.overlap.tensor_parallel, fp8);
  if (model_.low_rank_attention) {
    low_rank_part(list, LowRankPart::inputs, Direction::forward, fp8);
  } else if (model_.latent_attention) {
    latent_inputs(list, fp8);
  } else {
    const std::int64_t n = projected_columns();
    const Linear qkv{.name = "qkv",
                     .tokens = t,
                     .n = n,
                     .k = h,
                     .bias = model_.qkv_bias,
                     .fp8 = fp8,
                     .input_of_kernel = true,
                     .parts = parts_of_gathered(),
                     .role = ItemRole::qkv};
    add_linear(list, qkv);
    if (model_.cross_tokens > 0) add_linear(list, cross_projection());
    add_adapter(list, qkv, Edge::column);
    if (model_.position == PositionEncoding::relative) add_linear(list, distance_projection());
  }
  const double queries_keys = static_cast<double>(t * (heads_ + kv_heads_) * model_.qk_head_dim());
  add_query_key_norms(list, Direction::forward);
  const double rotated = rotated_elements();
  if (rotated > 0)
    add_rotary(list, "rotary", Direction::forward);
  else if (!attention_is_fused(model_, layout_.layer))
    add_elementwise(list, "split_heads", ElementwiseFunction::other, queries_keys, 1, 1);
  choose_keys(list, Direction::forward);
  attention_core(list, variant, Direction::forward);
  const double outputs = static_cast<double>(t * heads_ * model_.value_head_dim());
  if (model_.attention_output_gate)
    add_elementwise(list, "gate_output", ElementwiseFunction::multiply, outputs, 2, 1);
  if (model_.low_rank_attention) return low_rank_part(list, LowRankPart::output, Direction::forward, fp8);
  // A parallel residual adds both parts before their sum is reduced (GPT-NeoX): once, behind the FFN.
  add_row_product(list,
                  {.name = "attention_output",
                   .tokens = t,
                   .n = h,
                   .k = heads_ * model_.value_head_dim(),
                   .bias = model_.attention_output_bias && !layout_.layer.fused.bias_dropout_add,
                   .fp8 = fp8,
                   .role = ItemRole::attention_output},
                  model_.parallel_residual ? std::string_view{} : "reduce_attention_output");
}

std::int64_t LayerLists::projected_columns() const {
  const std::int64_t own = model_.shares_keys_values || model_.cross_tokens > 0 ? 0 : kv_heads_;
  const std::int64_t values = model_.values_are_keys ? 0 : own * model_.value_head_dim();
  return (heads_ + own) * model_.qk_head_dim() + values + heads_ * model_.gates_of_head();
}

// Of the output of latent attention.
LayerLists::Linear LayerLists::latent_gate(bool fp8) const {
  return {.name = "output_gate",
          .input_gradient = "output_gate_input_gradient",
          .weight_gradient = "output_gate_weight_gradient",
          .tokens = tokens_,
          .n = heads_ * model_.gates_of_head(),
          .k = model_.hidden_size,
          .fp8 = fp8};
}

// Keys and values of what cross-attention looks at.
LayerLists::Linear LayerLists::cross_projection() const {
  return {.name = "cross_keys_values",
          .input_gradient = "cross_keys_values_input_gradient",
          .weight_gradient = "cross_keys_values_weight_gradient",
          .tokens = layout_.batch.micro_batch_sequences * model_.cross_tokens,
          .n = kv_heads_ * (model_.qk_head_dim() + model_.value_head_dim()),
          .k = model_.hidden_size};
}

// The indexer: every rank of a tensor-parallel group has all of it. One kernel scores, on average, half of the keys for
// a query and adds up the heads; gradients of scores run through both operands.
void LayerLists::choose_keys(WorkList& list, Direction direction) const {
  if (!model_.sparse_indexer || model_.shares_chosen_keys) return;
  const SparseIndexer& index = *model_.sparse_indexer;
  const std::int64_t t = tokens_, s = layout_.batch.seq_len_tokens;
  // With compressed keys of its own, both products of what they are and by how much.
  const bool compressed = model_.low_rank_attention.has_value();
  const bool of_latent = model_.latent_attention && model_.latent_attention->q_lora_rank > 0;
  const std::int64_t seen = share(s, 2 * std::max<std::int64_t>(1, model_.compressed_tokens));
  const std::int64_t key_columns = (compressed ? 4 : 1) * index.head_dim;
  const Linear products[] = {{.name = "index_queries",
                              .input_gradient = "index_queries_input_gradient",
                              .weight_gradient = "index_queries_weight_gradient",
                              .tokens = t,
                              .n = index.n_heads * index.head_dim,
                              .k = compressed  ? model_.low_rank_attention->q_rank
                                   : of_latent ? model_.latent_attention->q_lora_rank
                                               : model_.hidden_size},
                             {.name = "index_keys",
                              .input_gradient = "index_keys_input_gradient",
                              .weight_gradient = "index_keys_weight_gradient",
                              .tokens = t,
                              .n = key_columns + index.n_heads,
                              .k = model_.hidden_size}};
  const double scores = static_cast<double>(t) * static_cast<double>(seen);
  const double flops = 2 * scores * static_cast<double>(index.n_heads * index.head_dim);
  const double operands = static_cast<double>(t * (index.n_heads + 1) * index.head_dim) * element_bytes_;
  const double fp32_scores = 4 * scores;
  if (direction == Direction::forward) {
    for (const Linear& product : products) add_linear(list, product);
    list.push_back({"index_scores", Operation{AmountShape{.flops = flops,
                                                          .bytes_read = operands,
                                                          .bytes_written = fp32_scores,
                                                          .matrix = true,
                                                          .kernel_class = KernelClass::attention},
                                              dtype_}});
    list.push_back({"choose_keys", Operation{ReductionShape{.rows = t, .cols = seen}, DType::fp32}});
    return;
  }
  list.push_back({"index_scores_gradient", Operation{AmountShape{.flops = 2 * flops,
                                                                 .bytes_read = operands + fp32_scores,
                                                                 .bytes_written = operands,
                                                                 .matrix = true,
                                                                 .kernel_class = KernelClass::attention},
                                                     dtype_, Direction::backward}});
  for (const Linear& product : products) add_linear_gradients(list, product, Edge::none);
}

void LayerLists::add_query_key_norms(WorkList& list, Direction direction) const {
  if (!model_.qk_norm) return;
  const bool forward = direction == Direction::forward;
  const auto add = [&](std::string_view name, std::int64_t rows, std::int64_t heads) {
    list.push_back({name, norm({NormKind::rms_norm, rows, heads * model_.qk_head_dim()}, dtype_, direction)});
  };
  if (!model_.qk_norm_spans_heads) {
    add(forward ? "query_key_norm" : "query_key_norm_gradient", tokens_ * (heads_ + kv_heads_), 1);
    return;
  }
  add(forward ? "query_norm" : "query_norm_gradient", tokens_, heads_);
  add(forward ? "key_norm" : "key_norm_gradient", tokens_, kv_heads_);
}

// The vectors of all distances, for every sequence of a micro-batch as XLNet has it.
LayerLists::Linear LayerLists::distance_projection() const {
  return {.name = "distances",
          .input_gradient = "distances_input_gradient",
          .weight_gradient = "distances_weight_gradient",
          .tokens = 2 * layout_.batch.micro_batch_sequences * layout_.batch.seq_len_tokens,
          .n = heads_ * model_.qk_head_dim(),
          .k = model_.hidden_size};
}

// From the latent vectors to queries, keys and values.
void LayerLists::latent_projections(WorkList& list, bool fp8) const {
  const LatentAttention& latent = *model_.latent_attention;
  const std::int64_t t = tokens_, queries = heads_ * (latent.qk_nope_head_dim + latent.qk_rope_head_dim);
  if (latent.q_lora_rank > 0) {
    list.push_back({"query_norm", norm({NormKind::rms_norm, t, latent.q_lora_rank}, dtype_)});
    add_linear(list, {"query_up", {}, {}, {}, t, queries, latent.q_lora_rank, false, fp8});
  }
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
  add_elementwise(list, "assemble_heads", ElementwiseFunction::other, static_cast<double>(t * queries * 2), 1,
                  1);
}

void LayerLists::latent_gradients(WorkList& list, bool fp8) const {
  const LatentAttention& latent = *model_.latent_attention;
  const std::int64_t queries = heads_ * (latent.qk_nope_head_dim + latent.qk_rope_head_dim);
  const auto gradients = [&](std::int64_t n, std::int64_t k, Edge edge) {
    add_linear_gradients(
        list, {{}, "latent_input_gradient", "latent_weight_gradient", {}, tokens_, n, k, false, fp8}, edge);
  };
  if (model_.attention_output_gate) add_linear_gradients(list, latent_gate(fp8), Edge::none);
  add_elementwise(list, "split_heads_gradient", ElementwiseFunction::other,
                  static_cast<double>(tokens_ * queries * 2), 1, 1);
  gradients(heads_ * (latent.qk_nope_head_dim + latent.v_head_dim), latent.kv_lora_rank, Edge::none);
  list.push_back({"key_value_norm_gradient",
                  norm({NormKind::rms_norm, tokens_, latent.kv_lora_rank}, dtype_, Direction::backward)});
  gradients(latent.kv_lora_rank + latent.qk_rope_head_dim, model_.hidden_size, Edge::none);
  if (latent.q_lora_rank > 0) {
    gradients(queries, latent.q_lora_rank, Edge::none);
    list.push_back({"query_norm_gradient",
                    norm({NormKind::rms_norm, tokens_, latent.q_lora_rank}, dtype_, Direction::backward)});
    gradients(latent.q_lora_rank, model_.hidden_size, Edge::column);
  } else {
    gradients(queries, model_.hidden_size, Edge::column);
  }
}

void LayerLists::attention_backward(WorkList& list, const LayerVariant& variant) const {
  const bool fp8 = is_narrow(layout_.layer.precision.compute) &&
                   layout_.layer.precision.fp8.attention_linears && !variant.sixteen_bit;
  const std::int64_t h = model_.hidden_size, t = tokens_;
  if (model_.low_rank_attention) {
    low_rank_part(list, LowRankPart::output, Direction::backward, fp8);
  } else {
    add_linear_gradients(list,
                         {.input_gradient = "attention_output_input_gradient",
                          .weight_gradient = "attention_output_weight_gradient",
                          .bias_gradient = "attention_output_bias_gradient",
                          .tokens = t,
                          .n = h,
                          .k = heads_ * model_.value_head_dim(),
                          .bias = model_.attention_output_bias,
                          .fp8 = fp8,
                          .role = ItemRole::attention_output},
                         model_.parallel_residual ? Edge::none : Edge::row);
  }
  if (model_.attention_output_gate) {
    const double outputs = static_cast<double>(t * heads_ * model_.value_head_dim());
    add_elementwise(list, "gate_output_gradient", ElementwiseFunction::multiply, outputs, 3, 2,
                    Direction::backward);
  }
  attention_core(list, variant, Direction::backward);
  choose_keys(list, Direction::backward);
  const double rotated = rotated_elements();
  const double queries_keys = static_cast<double>(t * (heads_ + kv_heads_) * model_.qk_head_dim());
  if (rotated > 0)
    add_rotary(list, "rotary_gradient", Direction::backward);
  else if (!attention_is_fused(model_, layout_.layer))
    add_elementwise(list, "merge_head_gradients", ElementwiseFunction::other, queries_keys, 1, 1);
  add_query_key_norms(list, Direction::backward);
  if (model_.low_rank_attention) return low_rank_part(list, LowRankPart::inputs, Direction::backward, fp8);
  if (model_.latent_attention) return latent_gradients(list, fp8);
  if (model_.position == PositionEncoding::relative)
    add_linear_gradients(list, distance_projection(), Edge::none);
  if (model_.cross_tokens > 0) add_linear_gradients(list, cross_projection(), Edge::none);
  add_linear_gradients(list,
                       {.input_gradient = "qkv_input_gradient",
                        .weight_gradient = "qkv_weight_gradient",
                        .bias_gradient = "qkv_bias_gradient",
                        .tokens = t,
                        .n = projected_columns(),
                        .k = h,
                        .bias = model_.qkv_bias,
                        .fp8 = fp8,
                        .role = ItemRole::qkv},
                       Edge::column);
}

}  // namespace stepcast::detail
