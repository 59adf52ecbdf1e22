// Placement: the ranks of each group of a layout, and their positions on nodes. Rank r is GPU r mod
// gpus_per_node of node r / gpus_per_node. The rank order of the layout says which degree changes fastest
// from rank to rank.
//
//   STEPCAST_ASSIGN(const Placement placement, place(layout, 8));
//   placement.tensor.n_nodes            // 1: tensor parallelism stays on NVLink
//   placement.data.groups_per_node      // concurrent gradient reductions that share the NICs of a node
//
// Experts have a separate order, as in Megatron Core: the ranks of a stage are expert_tensor_parallel x
// expert_parallel x the rest, in the same rank order.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "stepcast/base/result.h"
#include "stepcast/platform/group_placement.h"
#include "stepcast/workload/layout.h"

namespace stepcast {

// One placement per kind of group.
struct Placement {
  std::int64_t gpus_per_node = 1;
  std::int64_t n_nodes = 1;

  GroupPlacement tensor;
  GroupPlacement context;
  GroupPlacement data;          // data-parallel ranks with the same context-parallel index
  GroupPlacement data_context;  // all ranks with the same weights, which reduce gradients together
  GroupPlacement pipeline;
  GroupPlacement model;      // tensor x pipeline: the ranks of one replica, for the gradient norm
  GroupPlacement embedding;  // first and last stage with a tied embedding
  GroupPlacement shard;      // ranks that together have one copy of sharded weights
  GroupPlacement replicate;  // hybrid sharding: ranks with the same shard
  GroupPlacement expert;     // ranks of a token all-to-all
  GroupPlacement expert_tensor;
  GroupPlacement expert_data;  // ranks with the same experts
  GroupPlacement world;

  // Pairs of ranks that pass activations from stage i to stage i + 1; the last entry is from the last stage
  // to the first, which interleaved schedules use. Empty without a pipeline.
  std::vector<GroupPlacement> boundaries;
  friend bool operator==(const Placement&, const Placement&) = default;
};

// Errors: the rank order does not name the degrees, or shard groups do not fit the order. Where the layout
// needs several nodes, and its groups would straddle nodes of `gpus_per_node` GPUs but not of `segment` GPUs,
// ranks use only `segment` GPUs of every node.
[[nodiscard]] Result<Placement> place(const Layout& layout, std::int64_t gpus_per_node,
                                      std::optional<std::int64_t> segment = std::nullopt);

// "tp-cp-ep-dp-pp" in any order, each at most once; a degree of 1 may be omitted.
[[nodiscard]] Status check_rank_order(const Layout& layout);

}  // namespace stepcast
