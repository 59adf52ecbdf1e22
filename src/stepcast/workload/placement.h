// Placement: which ranks of a layout form its groups, and how those lie on nodes. Rank r is GPU
// r mod gpus_per_node of node r / gpus_per_node; the rank order of the layout says which degree changes
// fastest from rank to rank.
//
//   STEPCAST_ASSIGN(const Placement placement, place(layout, 8));
//   placement.tensor.n_nodes            // 1: tensor parallelism stays on NVLink
//   placement.data.groups_per_node      // so many gradient reductions share the node's network adapters
//
// Experts have an order of their own, as in Megatron Core: ranks of a stage are expert_tensor_parallel x
// expert_parallel x (what is left), in the same rank order.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "stepcast/base/result.h"
#include "stepcast/platform/group_placement.h"
#include "stepcast/workload/layout.h"

namespace stepcast {

struct Placement {
  std::int64_t gpus_per_node = 1;
  std::int64_t n_nodes = 1;

  GroupPlacement tensor;
  GroupPlacement context;
  GroupPlacement data;          // data-parallel ranks of one context-parallel place
  GroupPlacement data_context;  // all ranks with the same weights: gradients are reduced over these
  GroupPlacement pipeline;
  GroupPlacement model;      // tensor x pipeline: one replica's share of the gradient norm
  GroupPlacement embedding;  // first and last stage, which share a tied embedding
  GroupPlacement shard;      // ranks that hold one copy of sharded weights together
  GroupPlacement replicate;  // hybrid sharding: ranks with the same shard
  GroupPlacement expert;     // ranks that exchange tokens
  GroupPlacement expert_tensor;
  GroupPlacement expert_data;  // ranks with the same experts
  GroupPlacement world;

  // Pairs of ranks that pass activations from stage i to stage i + 1; the last entry from the last stage back
  // to the first, as interleaved schedules do. Empty without a pipeline.
  std::vector<GroupPlacement> boundaries;
  friend bool operator==(const Placement&, const Placement&) = default;
};

// An error if the rank order does not name the degrees or shard groups do not fit the order. Where the layout needs
// several nodes and groups would straddle those of `gpus_per_node` GPUs but not those of `segment` of them, ranks fill
// the segment of every node.
[[nodiscard]] Result<Placement> place(const Layout& layout, std::int64_t gpus_per_node,
                                      std::optional<std::int64_t> segment = std::nullopt);

// "tp-cp-ep-dp-pp" in any order, each at most once; a degree of 1 may be left out.
[[nodiscard]] Status check_rank_order(const Layout& layout);

}  // namespace stepcast
