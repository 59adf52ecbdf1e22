// Multi-head attention, and the parts shared by all kinds of attention: rotation, scores and values by flash
// kernels or separate operations, and context parallelism.
#include <algorithm>
#include <string>

#include <fmt/format.h>

#include "stepcast/workload/detail/activation_count.h"
#include "stepcast/workload/detail/layer_writer.h"
#include "stepcast/workload/detail/narrow_types.h"
#include "stepcast/workload/framework_behavior.h"
#include "stepcast/workload/modules/attention_module.h"
#include "stepcast/workload/modules/indexer.h"
#include "stepcast/workload/modules/parameters.h"

namespace stepcast {
namespace {

using detail::Edge;
using detail::is_narrow;
using detail::LayerVariant;
using detail::LayerWriter;
using detail::Linear;
using detail::rounded;
using detail::share;

// Elements of queries and keys on this rank.
double queries_keys(const LayerWriter& w) {
  return static_cast<double>(w.tokens() * (w.heads() + w.kv_heads()) * w.model().qk_head_dim());
}

// Rotary position encoding of `elements` elements.
void rotate(const LayerWriter& w, WorkList& list, double elements, std::string_view name,
            Direction direction) {
  const bool fused = w.layout().layer.fused.rotary || w.layout().layer.fused.compiled;
  list.push_back({name, elementwise({.function = fused ? ElementwiseFunction::rotary
                                                       : ElementwiseFunction::rotary_unfused,
                                     .elements = rounded(elements),
                                     .inner = w.model().qk_head_dim()},
                                    w.dtype(), direction)});
  // Unfused rotation is one more operator for the host; without operator counts only its launches are known.
  if (!fused && w.layout().layer.operator_launches) w.add_host_work(list, "rotary_on_host", 1);
}

// The attention shape of a whole sequence on this rank's heads, with packing, cross-attention and windows.
AttentionShape shape_of(const LayerWriter& w, const AttentionModule& attention, const LayerVariant& variant) {
  AttentionShape shape;
  shape.batch = w.layout().batch.micro_batch_sequences;
  shape.query_length = shape.key_length = w.layout().batch.seq_len_tokens;
  const double packed = w.layout().layer.packed_mean_tokens;
  if (packed > 0 && packed < static_cast<double>(w.layout().batch.seq_len_tokens)) {
    shape.query_length = shape.key_length = std::max<std::int64_t>(1, rounded(packed));
    shape.batch = std::max<std::int64_t>(
        1, rounded(static_cast<double>(shape.batch * w.layout().batch.seq_len_tokens) / packed));
  }
  shape.heads = w.heads();
  shape.key_value_heads = share(attention.key_value_heads(w.model()), w.tp());
  shape.head_dim = w.model().qk_head_dim();
  shape.value_head_dim = w.model().value_head_dim();
  shape.causal = w.model().architecture == Architecture::decoder && w.model().cross_tokens == 0;
  if (w.model().cross_tokens > 0) shape.key_length = w.model().cross_tokens;
  shape.window = attention.seen_keys(w.model(), shape.key_length, variant.window_tokens);
  shape.kernel = w.layout().layer.attention_kernel;
  return shape;
}

// Unfused attention: scores, mask, softmax, dropout and weighted values.
void write_out(const LayerWriter& w, WorkList& list, Direction direction) {
  const std::int64_t batch = w.layout().batch.micro_batch_sequences * w.heads();
  const std::int64_t s =
      w.model().cross_tokens > 0 ? w.model().cross_tokens : w.layout().batch.seq_len_tokens;
  const std::int64_t queries = share(w.layout().batch.seq_len_tokens, w.cp());
  const double scores = static_cast<double>(batch) * static_cast<double>(queries) * static_cast<double>(s);
  const double outputs = static_cast<double>(w.tokens() * w.heads() * w.model().value_head_dim());
  const bool causal = w.model().architecture == Architecture::decoder;
  const SoftmaxKind kind =
      causal && w.layout().layer.fused.softmax ? SoftmaxKind::causal_masked : SoftmaxKind::plain;
  const bool forward = direction == Direction::forward;
  const GemmShape by_keys{
      .batch = batch, .m = queries, .n = s, .k = w.model().qk_head_dim(), .layout = GemmLayout::tn};
  const GemmShape by_values{
      .batch = batch, .m = queries, .n = w.model().value_head_dim(), .k = s, .layout = GemmLayout::nn};
  const Operation softmax{SoftmaxShape{.kind = kind, .rows = batch * queries, .cols = s}, w.dtype(),
                          direction};
  // Queries times the vectors of 2 s distances, shifted so that columns are keys again.
  const bool relative = w.model().position == PositionEncoding::relative;
  const GemmShape by_distances{
      .batch = batch, .m = queries, .n = 2 * s, .k = w.model().qk_head_dim(), .layout = GemmLayout::tn};
  if (forward) {
    list.push_back({"scores", gemm(by_keys, w.dtype())});
    if (relative) {
      list.push_back({"distance_scores", gemm(by_distances, w.dtype())});
      w.add_elementwise(list, "shift_distances", ElementwiseFunction::other, scores, 1, 1);
      w.add_elementwise(list, "add_distance_scores", ElementwiseFunction::add, scores, 2, 1);
      w.add_elementwise(list, "add_segment_scores", ElementwiseFunction::add, scores, 2, 1);
    }
    if (!w.layout().layer.fused.softmax)
      w.add_elementwise(list, "mask", ElementwiseFunction::masked_fill, scores, 1, 1);
    list.push_back({"softmax", softmax});
    if (w.model().attention_dropout > 0)
      w.add_elementwise(list, "attention_dropout", ElementwiseFunction::dropout, scores, 1, 1);
    list.push_back({"weighted_values", gemm(by_values, w.dtype())});
    w.add_elementwise(list, "merge_heads", ElementwiseFunction::other, outputs, 1, 1);
    return;
  }
  w.add_elementwise(list, "split_heads_gradient", ElementwiseFunction::other, outputs, 1, 1);
  list.push_back({"weighted_values_gradient", gemm(by_values, w.dtype(), Direction::backward)});
  if (w.model().attention_dropout > 0) {
    w.add_elementwise(list, "attention_dropout_gradient", ElementwiseFunction::dropout, scores, 1, 1,
                      Direction::backward);
  }
  list.push_back({"softmax_gradient", softmax});
  if (!w.layout().layer.fused.softmax) {
    w.add_elementwise(list, "mask_gradient", ElementwiseFunction::masked_fill, scores, 1, 1,
                      Direction::backward);
  }
  if (relative) {
    w.add_elementwise(list, "shift_distances_gradient", ElementwiseFunction::other, 2 * scores, 1, 1,
                      Direction::backward);
    list.push_back({"distance_scores_gradient", gemm(by_distances, w.dtype(), Direction::backward)});
  }
  list.push_back({"scores_gradient", gemm(by_keys, w.dtype(), Direction::backward)});
}

// Ring attention: keys and values are passed around while every rank processes those that it has. Causal
// masks are balanced: every rank has an early and a late part, with one step on its part and cp - 1 steps on
// half of the pairs. In packed rows every sequence is distributed like this.
void attend_in_ring(const LayerWriter& w, WorkList& list, AttentionShape own, Direction direction) {
  own.query_length = own.key_length = share(own.query_length, w.cp());
  AttentionShape other = own;
  other.causal = false;
  if (own.causal) other.key_length = share(other.key_length, 2);
  const double key_values = static_cast<double>(w.tokens() * own.key_value_heads) *
                            static_cast<double>(own.head_dim + w.model().value_head_dim()) *
                            w.element_bytes();
  const bool forward = direction == Direction::forward;
  // Backward also passes on the gradients of keys and values.
  const Transfer step{CollectiveOp::send_receive, GroupKind::context, Bytes{key_values * (forward ? 1 : 2)}};
  const std::string_view name = forward ? "attention" : "attention_gradient";
  list.push_back({"exchange_keys_values", step, 1, true});
  const auto attend = [&](const AttentionShape& shape) {
    list.push_back({name, attention(shape, w.dtype(), direction)});
    list.back().role = ItemRole::attention;
  };
  attend(own);
  for (std::int64_t i = 1; i < w.cp(); ++i) {
    if (i + 1 < w.cp() || !forward) list.push_back({"exchange_keys_values", step, 1, true});
    attend(other);
    // Partial results are merged by their softmax sums.
    if (forward) {
      w.add_elementwise(list, "merge_attention", ElementwiseFunction::add,
                        static_cast<double>(w.tokens() * own.heads * w.model().value_head_dim()), 2, 1);
    }
  }
}

// Fused attention where one rank has the whole sequence.
void attend_whole(const LayerWriter& w, WorkList& list, std::string_view name, const Operation& kernel) {
  const bool forward = kernel.direction == Direction::forward;
  const std::int64_t inputs =
      w.tokens() * (w.heads() * w.model().qk_head_dim() +
                    w.kv_heads() * (w.model().qk_head_dim() + w.model().value_head_dim()));
  const std::int64_t outputs = w.tokens() * w.heads() * w.model().value_head_dim();
  const auto move = [&](std::string_view what, MovementKind kind, std::int64_t elements) {
    if (!w.layout().layer.attention_unpads) return;
    list.push_back({what, Operation{MovementShape{kind, elements, w.model().hidden_size}, w.dtype()}});
  };
  if (forward)
    move("unpad_inputs", MovementKind::gather, inputs);
  else
    move("unpad_output_gradient", MovementKind::gather, outputs);
  list.push_back({name, kernel});
  list.back().role = ItemRole::attention;
  // The padded result: zeros, then the values are scattered; backward joins the three gradients.
  move(forward ? "zero_output" : "zero_input_gradients", MovementKind::fill, forward ? outputs : inputs);
  move(forward ? "pad_output" : "pad_input_gradients", MovementKind::scatter, forward ? outputs : inputs);
  if (!forward) move("join_gradients", MovementKind::concatenate, inputs);
}

// The attention operations of this layer, by method and kind of context parallelism.
void attend(const LayerWriter& w, WorkList& list, const AttentionModule& module, const LayerVariant& variant,
            Direction direction) {
  const bool forward = direction == Direction::forward;
  const bool fp8 = is_narrow(w.layout().layer.precision.compute) &&
                   w.layout().layer.precision.fp8.attention && !variant.sixteen_bit;
  const DType dtype = fp8 ? DType::fp8 : w.dtype();
  const AttentionShape whole = shape_of(w, module, variant);
  if (!attention_is_fused(w.model(), w.layout().layer)) return write_out(w, list, direction);
  const std::string_view name = forward ? "attention" : "attention_gradient";
  if (w.cp() == 1) return attend_whole(w, list, name, attention(whole, dtype, direction));
  switch (w.layout().layer.context_parallel_kind) {
    case ContextParallelKind::ring: return attend_in_ring(w, list, whole, direction);
    case ContextParallelKind::all_to_all: {
      AttentionShape heads_split = whole;
      heads_split.heads = share(whole.heads, w.cp());
      heads_split.key_value_heads = share(whole.key_value_heads, w.cp());
      const double projections =
          static_cast<double>(w.tokens()) *
          static_cast<double>(whole.heads * whole.head_dim +
                              whole.key_value_heads * (whole.head_dim + w.model().value_head_dim()));
      const double outputs = static_cast<double>(w.tokens() * whole.heads * w.model().value_head_dim());
      const auto exchange = [&](std::string_view what, double elements) {
        list.push_back({what, Transfer{CollectiveOp::all_to_all, GroupKind::context,
                                       Bytes{elements * w.element_bytes()}}});
      };
      exchange("sequence_to_heads", forward ? projections : outputs);
      list.push_back({name, attention(heads_split, dtype, direction)});
      list.back().role = ItemRole::attention;
      exchange("heads_to_sequence", forward ? outputs : projections);
      return;
    }
    case ContextParallelKind::all_gather: {
      AttentionShape queries_split = whole;
      queries_split.query_length = share(whole.query_length, w.cp());
      queries_split.causal = false;
      // A balanced causal split leaves half of the pairs to every rank.
      if (whole.causal) queries_split.key_length = share(whole.key_length, 2);
      const double key_values = static_cast<double>(w.tokens() * w.cp() * whole.key_value_heads) *
                                static_cast<double>(whole.head_dim + w.model().value_head_dim()) *
                                w.element_bytes();
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

// Columns of the GEMM that computes queries, keys, values and gates on this rank.
std::int64_t projected_columns(const LayerWriter& w) {
  const std::int64_t own = w.model().shares_keys_values || w.model().cross_tokens > 0 ? 0 : w.kv_heads();
  const std::int64_t values = w.model().values_are_keys ? 0 : own * w.model().value_head_dim();
  return (w.heads() + own) * w.model().qk_head_dim() + values + w.heads() * w.model().gates_of_head();
}

// The GEMM for keys and values of the cross-attention source.
Linear cross_projection(const LayerWriter& w) {
  return {.name = "cross_keys_values",
          .input_gradient = "cross_keys_values_input_gradient",
          .weight_gradient = "cross_keys_values_weight_gradient",
          .tokens = w.layout().batch.micro_batch_sequences * w.model().cross_tokens,
          .n = w.kv_heads() * (w.model().qk_head_dim() + w.model().value_head_dim()),
          .k = w.model().hidden_size};
}

// Norms of queries and keys, per head or over all heads.
void add_query_key_norms(const LayerWriter& w, WorkList& list, Direction direction) {
  if (!w.model().qk_norm) return;
  const bool forward = direction == Direction::forward;
  const auto add = [&](std::string_view name, std::int64_t rows, std::int64_t heads) {
    list.push_back(
        {name, norm({NormKind::rms_norm, rows, heads * w.model().qk_head_dim()}, w.dtype(), direction)});
  };
  if (!w.model().qk_norm_spans_heads) {
    add(forward ? "query_key_norm" : "query_key_norm_gradient", w.tokens() * (w.heads() + w.kv_heads()), 1);
    return;
  }
  add(forward ? "query_norm" : "query_norm_gradient", w.tokens(), w.heads());
  add(forward ? "key_norm" : "key_norm_gradient", w.tokens(), w.kv_heads());
}

// The GEMM for the vectors of all distances, once per sequence of a micro-batch as in XLNet.
Linear distance_projection(const LayerWriter& w) {
  return {.name = "distances",
          .input_gradient = "distances_input_gradient",
          .weight_gradient = "distances_weight_gradient",
          .tokens = 2 * w.layout().batch.micro_batch_sequences * w.layout().batch.seq_len_tokens,
          .n = w.heads() * w.model().qk_head_dim(),
          .k = w.model().hidden_size};
}

}  // namespace

// ---------------------------------------------------------------------------------------------- description

std::int64_t AttentionModule::query_head_dim(const Transformer& model) const {
  return model.head_dim > 0 ? model.head_dim : model.hidden_size / model.n_heads;
}

std::int64_t AttentionModule::value_head_dim(const Transformer& model) const {
  return model.v_head_dim > 0 ? model.v_head_dim : query_head_dim(model);
}

std::int64_t AttentionModule::key_value_heads(const Transformer& model) const { return model.kv_heads(); }

std::int64_t AttentionModule::query_rank(const Transformer& /*model*/) const { return 0; }

// Selected keys cost as much as a window of the same number, wherever they are.
std::int64_t AttentionModule::seen_keys(const Transformer& model, std::int64_t /*key_length*/,
                                        std::int64_t window_tokens) const {
  return model.sparse_indexer ? model.sparse_indexer->keys_per_query : window_tokens;
}

double AttentionModule::rotated_elements(const LayerWriter& w) const {
  return static_cast<double>(w.tokens() * (w.heads() + w.kv_heads()) * query_head_dim(w.model())) *
         w.model().rotary_fraction;
}

// ----------------------------------------------------------------------------------------------- parameters

std::int64_t AttentionModule::output_parameters(const Transformer& model) const {
  std::int64_t n = model.n_heads * value_head_dim(model) * model.hidden_size;
  if (model.attention_output_bias) n += model.hidden_size;
  return n + model.hidden_size * model.n_heads * model.gates_of_head();
}

std::int64_t AttentionModule::parameters(const Transformer& model) const {
  std::int64_t n = output_parameters(model);
  std::int64_t columns = (model.n_heads + model.own_kv_heads()) * query_head_dim(model);
  if (!model.values_are_keys) columns += model.own_kv_heads() * value_head_dim(model);
  n += model.hidden_size * columns;
  if (model.qkv_bias) n += columns + model.n_heads * model.gates_of_head();
  // A projection of distances, three biases on queries, and vectors that mark tokens of the same segment.
  if (model.position == PositionEncoding::relative)
    n += (model.hidden_size + 3 + model.n_token_types) * model.n_heads * query_head_dim(model);
  if (model.qk_norm) {
    const std::int64_t heads = model.qk_norm_spans_heads  ? model.n_heads + model.kv_heads()
                               : model.shares_keys_values ? 1
                                                          : 2;
    n += norm_parameters(model, heads * query_head_dim(model));
  }
  n += Indexer::parameters(model);
  return model.cross_tokens > 0 ? n + 2 : n;
}

// Queries and keys, with a norm each.
std::int64_t AttentionModule::indexer_parameters(const Transformer& model, const SparseIndexer& index) const {
  return model.hidden_size * (index.n_heads + 1) * index.head_dim + 2 * index.head_dim;
}

std::pair<double, double> AttentionModule::parameter_bounds(const Transformer& model) const {
  const double head_dim = model.head_dim > 0
                              ? static_cast<double>(model.head_dim)
                              : static_cast<double>(model.hidden_size) / static_cast<double>(model.n_heads);
  return {std::max(head_dim, static_cast<double>(model.v_head_dim)), 0};
}

// Queries, keys and values are separate matrices (Megatron: --muon-split-qkv, its default).
void AttentionModule::weight_matrices(const Transformer& model, std::int64_t tp, std::int64_t copies,
                                      MatrixSink& matrices) const {
  const std::int64_t h = model.hidden_size, queries = share(model.n_heads, tp) * query_head_dim(model);
  const std::int64_t keys = share(model.kv_heads(), tp) * query_head_dim(model);
  matrices.add_matrix(queries, h, copies);
  matrices.add_matrix(keys, h, 2 * copies);
  if (model.position == PositionEncoding::relative) matrices.add_matrix(queries, h, copies);
}

// ----------------------------------------------------------------------------------------------------- work

void AttentionModule::project(const LayerWriter& w, WorkList& list, bool fp8) const {
  const Linear qkv{.name = "qkv",
                   .tokens = w.tokens(),
                   .n = projected_columns(w),
                   .k = w.model().hidden_size,
                   .bias = w.model().qkv_bias,
                   .fp8 = fp8,
                   .input_of_kernel = true,
                   .parts = w.parts_of_gathered(),
                   .role = ItemRole::qkv};
  w.add_linear(list, qkv);
  if (w.model().cross_tokens > 0) w.add_linear(list, cross_projection(w));
  w.add_adapter(list, qkv, Edge::column);
  if (w.model().position == PositionEncoding::relative) w.add_linear(list, distance_projection(w));
}

void AttentionModule::project_gradients(const LayerWriter& w, WorkList& list, bool fp8) const {
  if (w.model().position == PositionEncoding::relative)
    w.add_linear_gradients(list, distance_projection(w), Edge::none);
  if (w.model().cross_tokens > 0) w.add_linear_gradients(list, cross_projection(w), Edge::none);
  w.add_linear_gradients(list,
                         {.input_gradient = "qkv_input_gradient",
                          .weight_gradient = "qkv_weight_gradient",
                          .bias_gradient = "qkv_bias_gradient",
                          .tokens = w.tokens(),
                          .n = projected_columns(w),
                          .k = w.model().hidden_size,
                          .bias = w.model().qkv_bias,
                          .fp8 = fp8,
                          .role = ItemRole::qkv},
                         Edge::column);
}

// A parallel residual adds both parts before the reduction (GPT-NeoX): once, after the FFN.
void AttentionModule::add_output(const LayerWriter& w, WorkList& list, bool fp8) const {
  const Transformer& model = w.model();
  w.add_row_product(list,
                    {.name = "attention_output",
                     .tokens = w.tokens(),
                     .n = model.hidden_size,
                     .k = w.heads() * value_head_dim(model),
                     .bias = model.attention_output_bias && !w.layout().layer.fused.bias_dropout_add,
                     .fp8 = fp8,
                     .role = ItemRole::attention_output},
                    model.parallel_residual ? std::string_view{} : "reduce_attention_output");
}

void AttentionModule::output_gradients(const LayerWriter& w, WorkList& list, bool fp8) const {
  const Transformer& model = w.model();
  w.add_linear_gradients(list,
                         {.input_gradient = "attention_output_input_gradient",
                          .weight_gradient = "attention_output_weight_gradient",
                          .bias_gradient = "attention_output_bias_gradient",
                          .tokens = w.tokens(),
                          .n = model.hidden_size,
                          .k = w.heads() * value_head_dim(model),
                          .bias = model.attention_output_bias,
                          .fp8 = fp8,
                          .role = ItemRole::attention_output},
                         model.parallel_residual ? Edge::none : Edge::row);
}

void AttentionModule::expand(const LayerWriter& /*w*/, WorkList& /*list*/, bool /*fp8*/) const {}

void AttentionModule::forward(const LayerWriter& w, WorkList& list, const LayerVariant& variant) const {
  const Transformer& model = w.model();
  const bool fp8 = w.has_narrow_mixer(variant);
  w.gather_tokens(list, "gather_attention_input", w.layout().layer.overlap.tensor_parallel, fp8);
  project(w, list, fp8);
  add_query_key_norms(w, list, Direction::forward);
  const double rotated = model.position == PositionEncoding::rotary ? rotated_elements(w) : 0;
  if (rotated > 0) {
    rotate(w, list, rotated, "rotary", Direction::forward);
  } else if (!attention_is_fused(model, w.layout().layer)) {
    w.add_elementwise(list, "split_heads", ElementwiseFunction::other, queries_keys(w), 1, 1);
  }
  Indexer::forward(w, list);
  attend(w, list, *this, variant, Direction::forward);
  const auto outputs = static_cast<double>(w.tokens() * w.heads() * value_head_dim(model));
  if (model.attention_output_gate)
    w.add_elementwise(list, "gate_output", ElementwiseFunction::multiply, outputs, 2, 1);
  add_output(w, list, fp8);
}

void AttentionModule::backward(const LayerWriter& w, WorkList& list, const LayerVariant& variant) const {
  const Transformer& model = w.model();
  const bool fp8 = w.has_narrow_mixer(variant);
  output_gradients(w, list, fp8);
  if (model.attention_output_gate) {
    const auto outputs = static_cast<double>(w.tokens() * w.heads() * value_head_dim(model));
    w.add_elementwise(list, "gate_output_gradient", ElementwiseFunction::multiply, outputs, 3, 2,
                      Direction::backward);
  }
  attend(w, list, *this, variant, Direction::backward);
  Indexer::backward(w, list);
  const double rotated = model.position == PositionEncoding::rotary ? rotated_elements(w) : 0;
  if (rotated > 0) {
    rotate(w, list, rotated, "rotary_gradient", Direction::backward);
  } else if (!attention_is_fused(model, w.layout().layer)) {
    w.add_elementwise(list, "merge_head_gradients", ElementwiseFunction::other, queries_keys(w), 1, 1);
  }
  add_query_key_norms(w, list, Direction::backward);
  project_gradients(w, list, fp8);
}

void AttentionModule::recompute_core(const LayerWriter& w, WorkList& list) {
  if (!attention_is_fused(w.model(), w.layout().layer)) write_out(w, list, Direction::forward);
}

// --------------------------------------------------------------------------------------------------- memory

void AttentionModule::add_parameters(const Transformer& model, ParameterCount& count) const {
  count.attention += parameters(model);
  if (model.attention_sinks && model.mixer == Mixer::attention) count.attention += model.n_heads;
}

// Includes the results of a parallel state mixer, and the norm of both.
double AttentionModule::kept(const detail::ActivationCount& count) const {
  const LayerChoices& layer = count.layout().layer;
  return count.state_results() + Indexer::kept(count) + count.streams() + kept_inputs(count) +
         count.hidden() +
         count.linear_input(count.hidden(), layer.precision.fp8.attention_linears, layer.adapters.qkv, 3) +
         (layer.adapters.dropout
              ? count.linear_input(count.attention_output(), false, layer.adapters.attention_output)
              : 0) +
         count.queries_keys_values() + count.attention_output() + count.attention_core() +
         (count.model().hidden_dropout > 0 ? count.norm_mask() : 0);
}

double AttentionModule::kept_inputs(const detail::ActivationCount& /*count*/) const { return 0; }

// Key-value heads are replicated where there are fewer than tensor-parallel ranks.
CachedKeys AttentionModule::cache(const Transformer& model, std::int64_t tp) const {
  const auto width = static_cast<double>(query_head_dim(model) + value_head_dim(model));
  return {static_cast<double>(share(model.kv_heads(), tp)) * width, width};
}

// --------------------------------------------------------------------------------------------------- checks

Status AttentionModule::check_size(const Transformer& model, const AttentionSize& size,
                                   std::int64_t value) const {
  return check_sizes(model, fmt::format("{}_attention.", traits_.name),
                     {{size.key, value, size.smallest, size.largest}});
}

Status AttentionModule::check(const Transformer& model) const {
  for (std::size_t i = 0; i < traits_.sizes.size(); ++i)
    STEPCAST_TRY(check_size(model, traits_.sizes[i], model.attention.sizes[i]));
  return Ok{};
}

}  // namespace stepcast
