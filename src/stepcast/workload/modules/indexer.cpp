#include "stepcast/workload/modules/indexer.h"

#include <algorithm>

#include <fmt/format.h>

#include "stepcast/base/number.h"
#include "stepcast/workload/detail/activation_count.h"
#include "stepcast/workload/detail/layer_writer.h"
#include "stepcast/workload/modules/attention_module.h"
#include "stepcast/workload/modules/parameters.h"

namespace stepcast {
namespace {

using detail::Edge;
using detail::LayerWriter;
using detail::Linear;
using detail::share;

// One kernel scores on average half of the keys for each query and sums over heads; gradients of scores go to
// both operands.
void write(const LayerWriter& w, WorkList& list, Direction direction) {
  if (!w.model().sparse_indexer || w.model().shares_chosen_keys) return;
  const SparseIndexer& index = *w.model().sparse_indexer;
  const std::int64_t t = w.tokens(), s = w.layout().batch.seq_len_tokens;
  // With separate compressed keys: GEMMs for content and weights of the tokens, both for two overlapping
  // blocks.
  const AttentionModule& attention = attention_of(w.model());
  const bool compressed = attention.traits().compresses_keys;
  const std::int64_t rank = attention.query_rank(w.model());
  const std::int64_t seen = share(s, 2 * std::max<std::int64_t>(1, w.model().compressed_tokens));
  const std::int64_t key_columns = (compressed ? 4 : 1) * index.head_dim;
  const Linear products[] = {{.name = "index_queries",
                              .input_gradient = "index_queries_input_gradient",
                              .weight_gradient = "index_queries_weight_gradient",
                              .tokens = t,
                              .n = index.n_heads * index.head_dim,
                              .k = rank > 0 ? rank : w.model().hidden_size},
                             {.name = "index_keys",
                              .input_gradient = "index_keys_input_gradient",
                              .weight_gradient = "index_keys_weight_gradient",
                              .tokens = t,
                              .n = key_columns + index.n_heads,
                              .k = w.model().hidden_size}};
  const double scores = static_cast<double>(t) * static_cast<double>(seen);
  const double flops = 2 * scores * static_cast<double>(index.n_heads * index.head_dim);
  const double operands = static_cast<double>(t * (index.n_heads + 1) * index.head_dim) * w.element_bytes();
  const double fp32_scores = 4 * scores;
  if (direction == Direction::forward) {
    for (const Linear& product : products) w.add_linear(list, product);
    list.push_back({"index_scores", Operation{AmountShape{.flops = flops,
                                                          .bytes_read = operands,
                                                          .bytes_written = fp32_scores,
                                                          .matrix = true,
                                                          .kernel_class = KernelClass::attention},
                                              w.dtype()}});
    list.push_back({"choose_keys", Operation{ReductionShape{.rows = t, .cols = seen}, DType::fp32}});
    return;
  }
  list.push_back({"index_scores_gradient", Operation{AmountShape{.flops = 2 * flops,
                                                                 .bytes_read = operands + fp32_scores,
                                                                 .bytes_written = operands,
                                                                 .matrix = true,
                                                                 .kernel_class = KernelClass::attention},
                                                     w.dtype(), Direction::backward}});
  for (const Linear& product : products) w.add_linear_gradients(list, product, Edge::none);
}

}  // namespace

std::int64_t Indexer::parameters(const Transformer& model) {
  if (!model.sparse_indexer || model.shares_chosen_keys) return 0;
  return attention_of(model).indexer_parameters(model, *model.sparse_indexer);
}

void Indexer::forward(const LayerWriter& w, WorkList& list) { write(w, list, Direction::forward); }

void Indexer::backward(const LayerWriter& w, WorkList& list) { write(w, list, Direction::backward); }

double Indexer::kept(const detail::ActivationCount& count) {
  if (!count.model().sparse_indexer) return 0;
  const SparseIndexer& index = *count.model().sparse_indexer;
  const double chosen = 4 * as_double(std::min(index.keys_per_query, count.layout().batch.seq_len_tokens));
  return count.tokens() * (count.element() * as_double((index.n_heads + 1) * index.head_dim) + chosen);
}

Status Indexer::check(const Transformer& model) {
  if (!model.sparse_indexer) return Ok{};
  const SparseIndexer& index = *model.sparse_indexer;
  constexpr std::int64_t kWidth = 10'000;
  return check_sizes(model, "sparse_indexer.",
                     {{"n_heads", index.n_heads, 1, kWidth},
                      {"head_dim", index.head_dim, 1, kWidth},
                      {"keys_per_query", index.keys_per_query, 1, 1'000'000'000}});
}

}  // namespace stepcast
