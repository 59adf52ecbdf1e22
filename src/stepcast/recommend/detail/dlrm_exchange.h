// What the vectors of looked-up rows take on their way to the samples' ranks, level by level.
//
// Flat: one all-to-all of all ranks. Of two levels, as HugeCTR sends what leaves a node: the ranks of a node first hand
// each other what goes to the GPUs of their own place in all nodes, parts of one table summed; then each sends one sum to
// the GPU of its place in every other node. The adapters of a node so carry as much each, wherever its tables lie.
// Gradients go the same way back.
#pragma once

#include <cstdint>
#include <vector>

#include "stepcast/base/result.h"
#include "stepcast/operation/estimate.h"
#include "stepcast/platform/group_placement.h"
#include "stepcast/predict/step_prices.h"
#include "stepcast/recommend/detail/dlrm_loads.h"

namespace stepcast::detail {

// The groups of a job: all its ranks, those of one node, and those of one place in all nodes.
struct DlrmGroupsOnNodes {
  std::int64_t n_ranks = 1, gpus_per_node = 1, n_nodes = 1;
  GroupPlacement world, node, rail;
  static DlrmGroupsOnNodes of(std::int64_t n_ranks, std::int64_t gpus_per_node);
};

// Sizes to ask the curve of an all-to-all for (uneven_all_to_all_size).
struct LevelSizes {
  Bytes in_node, between_nodes;
};
[[nodiscard]] LevelSizes level_sizes(const std::vector<RankLoad>& ranks, double batch, double vector_bytes,
                                     const DlrmGroupsOnNodes& groups);

// One way. Of stacks that have both, the shorter: which one is a setting of the job. The time of the whole, with the
// origin of its longer level.
[[nodiscard]] Result<Estimate> price_vectors(const std::vector<RankLoad>& ranks, double batch,
                                             double vector_bytes, bool two_levels,
                                             const DlrmGroupsOnNodes& groups, StepPricer& prices);

}  // namespace stepcast::detail
