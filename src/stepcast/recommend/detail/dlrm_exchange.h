// The time to send looked-up embedding vectors to the ranks of the samples, for flat and for two-level
// exchanges.
//
// Flat: one all-to-all of all ranks. Two levels, as HugeCTR sends vectors between nodes: first the ranks of a
// node exchange what goes to GPUs in the same position of all nodes, and parts of one table are summed. Then
// each rank sends one sum to the GPU in its position of each other node. All NICs of a node therefore carry
// the same amount, independent of the placement of tables. Gradients take the reverse way.
#pragma once

#include <cstdint>
#include <vector>

#include "stepcast/base/result.h"
#include "stepcast/operation/estimate.h"
#include "stepcast/platform/group_placement.h"
#include "stepcast/predict/step_prices.h"
#include "stepcast/recommend/detail/dlrm_loads.h"

namespace stepcast::detail {

// The groups of ranks in a job: all ranks (world), the ranks of one node (node), and the ranks with one
// position in all nodes (rail).
struct DlrmGroupsOnNodes {
  std::int64_t n_ranks = 1, gpus_per_node = 1, n_nodes = 1;
  GroupPlacement world, node, rail;
  static DlrmGroupsOnNodes of(std::int64_t n_ranks, std::int64_t gpus_per_node);
};

// Message sizes for the two levels, as the curve of an all-to-all expects them (uneven_all_to_all_size).
struct LevelSizes {
  Bytes in_node, between_nodes;
};
// `batch` is the global batch in samples, `vector_bytes` the size of an element of the vectors.
[[nodiscard]] LevelSizes level_sizes(const std::vector<RankLoad>& ranks, double batch, double vector_bytes,
                                     const DlrmGroupsOnNodes& groups);

// The time of the exchange in one direction. With `two_levels`, the shorter of flat and two-level is used,
// since the job can be configured for either. The source is that of the longer level.
[[nodiscard]] Result<Estimate> price_vectors(const std::vector<RankLoad>& ranks, double batch,
                                             double vector_bytes, bool two_levels,
                                             const DlrmGroupsOnNodes& groups, StepPricer& prices);

}  // namespace stepcast::detail
