// Attention of DeepSeek-V4, whose queries, keys and way out are low-rank and whose layers attend to compressed keys, and
// the streams around its layers. Every rank of a stage has all of it: layouts split neither.
#include "stepcast/base/number.h"
#include "stepcast/workload/detail/layer_lists.h"

namespace stepcast::detail {

void LayerLists::low_rank_part(WorkList& list, LowRankPart part, Direction direction, bool fp8) const {
  const LowRankAttention& low = *model_.low_rank_attention;
  const bool forward = direction == Direction::forward;
  const std::int64_t t = tokens_, h = model_.hidden_size, head = model_.qk_head_dim(),
                     queries = heads_ * head;
  const auto product = [&](std::string_view name, std::int64_t tokens, std::int64_t n, std::int64_t k,
                           ItemRole role = ItemRole::other) {
    const Linear linear{.name = name,
                        .input_gradient = "low_rank_input_gradient",
                        .weight_gradient = "low_rank_weight_gradient",
                        .tokens = tokens,
                        .n = n,
                        .k = k,
                        .fp8 = fp8,
                        .role = role};
    forward ? add_linear(list, linear) : add_linear_gradients(list, linear, Edge::none);
  };
  const auto rms_norm = [&](std::string_view name, std::int64_t rows, std::int64_t width) {
    list.push_back({name, norm({NormKind::rms_norm, rows, width}, dtype_, direction)});
  };
  if (part == LowRankPart::output) {
    const std::int64_t groups = low.output_groups;
    const auto down = [&] { product("output_down", t * groups, low.output_rank, queries / groups); };
    if (forward) down();
    product("attention_output", t, h, groups * low.output_rank, ItemRole::attention_output);
    if (!forward) down();
    return;
  }
  product("query_down", t, low.q_rank, h);
  rms_norm("query_norm", t, low.q_rank);
  product("query_up", t, queries, low.q_rank);
  rms_norm("query_head_norm", t * heads_, head);
  product("key_value", t, head, h);
  rms_norm("key_value_norm", t, head);
  const std::int64_t every = model_.compressed_tokens;
  if (every == 0) return;
  // What the tokens say and by how much, and their weighted mean.
  const std::int64_t columns = (model_.sparse_indexer ? 2 : 1) * head;
  product("compressed_keys", t, 2 * columns, h);
  add_elementwise(list, "weigh_keys", ElementwiseFunction::other, as_double(t * columns), 2,
                  forward ? 1 / as_double(every) : 2, direction);
  rms_norm("compressed_key_norm", share(t, every), head);
}

// A product of all streams gives the weights of three mixes (in front of the part, of its result, and among the streams,
// balanced by iterations in one kernel); then the mixes.
void LayerLists::mix_streams(WorkList& list, Direction direction) const {
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
  // Gradients of the streams, and of the weights from the streams themselves.
  add_elementwise(list, "write_streams_gradient", ElementwiseFunction::other, elements, 2 * streams + 1,
                  streams + 1, direction);
  add_elementwise(list, "read_streams_gradient", ElementwiseFunction::other, elements, 2 * streams + 1,
                  streams, direction);
  add_elementwise(list, "balance_streams_gradient", ElementwiseFunction::other, balanced, 2, 1, direction);
  add_linear_gradients(list, product, Edge::none);
}

}  // namespace stepcast::detail
