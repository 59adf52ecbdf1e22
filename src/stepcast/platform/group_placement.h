// Placement of communicating ranks on the nodes of a machine: everything that determines the time of a
// collective except its message.
#pragma once

#include <cstdint>
#include <span>

namespace stepcast {

// Placement of the groups of one kind. Where groups of a kind differ (3 ranks on nodes of 8), it is that of
// the group over most nodes.
struct GroupPlacement {
  std::int64_t n_ranks = 1;             // of one group
  std::int64_t n_nodes = 1;             // that one group spans
  std::int64_t ranks_per_node = 1;      // on the node with most ranks of the group
  std::int64_t min_ranks_per_node = 1;  // on the node with the fewest
  // Groups of this kind on the fullest node, in units of ranks_per_node ranks: two half groups count as one.
  // For groups over several nodes, groups inside one node do not count.
  std::int64_t groups_per_node = 1;
  bool rail_aligned = true;  // the local GPU indices on every node are among those on its fullest node
  bool uniform = true;       // all groups of the kind have the same placement
  // Factor on transfers between nodes from the fabric behind the NICs: links that limit the group, alone or
  // together with others.
  double network_slowdown = 1;
  // Latency between zones that one trip around the ring adds to the latency of the platform's network.
  double between_zones_us = 0;
  friend bool operator==(const GroupPlacement&, const GroupPlacement&) = default;
};

using RankSpan = std::span<const std::uint32_t>;

// Placement of the group of `ranks`, where rank r is GPU r mod gpus_per_node of node r / gpus_per_node.
// `same_kind`: all groups that communicate at the same time, including this one. Ranks may be in any order,
// without repeats in a group; `gpus_per_node` at least 1.
[[nodiscard]] GroupPlacement place_ranks(RankSpan ranks, std::int64_t gpus_per_node,
                                         std::span<const RankSpan> same_kind);

// One placement that represents all groups of a kind: that of the group over most nodes, rail-aligned only if
// all are.
[[nodiscard]] GroupPlacement place_groups(std::span<const RankSpan> groups, std::int64_t gpus_per_node);

}  // namespace stepcast
