// How the ranks that communicate with each other lie on the nodes of a machine: all that the time of a
// collective depends on apart from its message.
#pragma once

#include <cstdint>
#include <span>

namespace stepcast {

// How the groups of one kind lie on nodes. Where groups of a kind differ (3 ranks on nodes of 8), that of the
// group over most nodes.
struct GroupPlacement {
  std::int64_t n_ranks = 1;             // of one group
  std::int64_t n_nodes = 1;             // that one group touches
  std::int64_t ranks_per_node = 1;      // on the node that holds most of the group, and
  std::int64_t min_ranks_per_node = 1;  // on the one that holds fewest
  // Groups of this kind on one node, the fullest, each with ranks_per_node: two halves of groups are one. For groups over
  // several nodes only those count.
  std::int64_t groups_per_node = 1;
  bool rail_aligned =
      true;  // on each of its nodes a group has places that it has on the one that holds most of it
  bool uniform = true;  // all groups of the kind lie alike
  // Transfers between nodes take so many times as long behind their adapters: links of the fabric that hold them up, alone
  // or beside others.
  double network_slowdown = 1;
  // Latency between zones that one trip round its ring meets, on top of what the platform's own network has.
  double between_zones_us = 0;
  friend bool operator==(const GroupPlacement&, const GroupPlacement&) = default;
};

using RankSpan = std::span<const std::uint32_t>;

// How the group of `ranks` lies where rank r is GPU r mod gpus_per_node of node r / gpus_per_node. `same_kind`
// are all groups that communicate at the same time, this one among them. No rank twice in a group, ranks in
// any order; `gpus_per_node` at least 1.
[[nodiscard]] GroupPlacement place_ranks(RankSpan ranks, std::int64_t gpus_per_node,
                                         std::span<const RankSpan> same_kind);

// The placement that stands for all groups of a kind: of the group over most nodes, on rails only if all are.
[[nodiscard]] GroupPlacement place_groups(std::span<const RankSpan> groups, std::int64_t gpus_per_node);

}  // namespace stepcast
