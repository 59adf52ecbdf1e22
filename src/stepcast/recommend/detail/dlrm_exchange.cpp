// Prices the exchange of embedding vectors between ranks, flat or in two levels. Uneven amounts become one
// size for the curve of an all-to-all by uneven_all_to_all_size() (cost/collective_model.h).
#include "stepcast/recommend/detail/dlrm_exchange.h"

#include <algorithm>
#include <numeric>
#include <span>

#include "stepcast/cost/collective_model.h"
#include "stepcast/operation/collective_kind.h"

namespace stepcast::detail {
namespace {

// The sum of two estimates that run one after the other. Both ends of the band add up, since errors of one
// model have the same direction. The source is that of the longer part.
Estimate one_after_the_other(const Estimate& a, const Estimate& b) {
  return {Microseconds{a.time.value() + b.time.value()}, Microseconds{a.p10.value() + b.p10.value()},
          Microseconds{a.p90.value() + b.p90.value()}, a.time.value() > b.time.value() ? a.source : b.source};
}

}  // namespace

// A rail contains the GPUs with the same position in all nodes.
DlrmGroupsOnNodes DlrmGroupsOnNodes::of(std::int64_t n_ranks, std::int64_t gpus_per_node) {
  DlrmGroupsOnNodes g{.n_ranks = n_ranks, .gpus_per_node = gpus_per_node};
  g.n_nodes = (n_ranks + gpus_per_node - 1) / gpus_per_node;
  std::vector<std::uint32_t> all(static_cast<std::size_t>(n_ranks));
  std::iota(all.begin(), all.end(), 0U);
  const RankSpan world{all}, first = world.first(static_cast<std::size_t>(std::min(n_ranks, gpus_per_node)));
  g.world = place_ranks(world, gpus_per_node, std::span{&world, 1});
  g.node = place_ranks(first, gpus_per_node, std::span{&first, 1});
  std::vector<std::vector<std::uint32_t>> rails(first.size());
  for (const std::uint32_t rank : all) rails[rank % first.size()].push_back(rank);
  const std::vector<RankSpan> same_kind(rails.begin(), rails.end());
  g.rail = place_ranks(same_kind.front(), gpus_per_node, same_kind);
  return g;
}

LevelSizes level_sizes(const std::vector<RankLoad>& ranks, double batch, double vector_bytes,
                       const DlrmGroupsOnNodes& groups) {
  LevelSizes sizes;
  const auto in_node = static_cast<std::size_t>(std::min(groups.n_ranks, groups.gpus_per_node));
  std::vector<Bytes> nodes;
  for (std::size_t first = 0; first < ranks.size(); first += in_node) {
    std::vector<Bytes> shares;
    double columns = 0;  // width of the sums that the node sends
    for (std::size_t r = first; r < std::min(ranks.size(), first + in_node); ++r) {
      // Inside a node, a rank sends the vectors and partial sums of all samples; each peer takes those for
      // the samples of the GPUs in its position of all nodes.
      shares.push_back(Bytes{batch / static_cast<double>(in_node) *
                             (ranks[r].vector_dims + ranks[r].node_dims) * vector_bytes});
      columns += ranks[r].vector_dims;
    }
    sizes.in_node = std::max(sizes.in_node, uneven_all_to_all_size(shares));
    nodes.push_back(Bytes{batch / static_cast<double>(ranks.size()) * columns * vector_bytes});
  }
  sizes.between_nodes = uneven_all_to_all_size(nodes);
  return sizes;
}

// `vector_bytes` is the size of an element. With partial sums (`node_dims`), a reduce-scatter inside the node
// is added.
Result<Estimate> price_vectors(const std::vector<RankLoad>& ranks, double batch, double vector_bytes,
                               bool two_levels, const DlrmGroupsOnNodes& groups, StepPricer& prices) {
  const double own_batch = batch / static_cast<double>(groups.n_ranks);
  std::vector<Bytes> shares;
  double node_dims = 0;
  for (const RankLoad& load : ranks) {
    shares.push_back(Bytes{own_batch * load.vector_dims * vector_bytes});
    node_dims = std::max(node_dims, load.node_dims);
  }
  STEPCAST_ASSIGN(Estimate flat,
                  prices.price(CollectiveOp::all_to_all, uneven_all_to_all_size(shares), groups.world));
  if (node_dims > 0) {
    // Partial sums within a node: reduce-scatter forward, all-gather of gradients backward.
    STEPCAST_ASSIGN(const Estimate sums, prices.price(CollectiveOp::reduce_scatter,
                                                      Bytes{batch * node_dims * vector_bytes}, groups.node));
    flat = one_after_the_other(flat, sums);
  }
  if (!two_levels || groups.n_nodes <= 1) return flat;
  const LevelSizes sizes = level_sizes(ranks, batch, vector_bytes, groups);
  STEPCAST_ASSIGN(const Estimate near, prices.price(CollectiveOp::all_to_all, sizes.in_node, groups.node));
  STEPCAST_ASSIGN(const Estimate far,
                  prices.price(CollectiveOp::all_to_all, sizes.between_nodes, groups.rail));
  const Estimate levels = one_after_the_other(near, far);
  return levels.time < flat.time ? levels : flat;
}

}  // namespace stepcast::detail
