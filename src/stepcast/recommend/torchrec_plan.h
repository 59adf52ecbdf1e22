// Reads and writes sharding plans of TorchRec as JSON, the content of `ShardingPlan` of torchrec.distributed.
//
//   {"plan": {"embedding_bag_collection": {"table_0": {"sharding_type": "table_wise", "compute_kernel": "fused",
//     "ranks": [3], "sharding_spec": {"shards": [{"shard_offsets": [0, 0], "shard_sizes": [1000, 64],
//     "placement": "rank:3/cuda:3"}]}}}}}
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "stepcast/base/result.h"
#include "stepcast/recommend/dlrm.h"

namespace stepcast {

// The plan as JSON. `gpus_per_node` determines the device number of a rank.
[[nodiscard]] std::string torchrec_plan_json(const Dlrm& model, const ShardingPlan& plan,
                                             std::int64_t n_ranks, std::int64_t gpus_per_node);
// Reads a plan. Tables are found by name in any module. Errors: a table of the model that is missing, a table
// that the model does not have, a rank twice or out of range.
[[nodiscard]] Result<ShardingPlan> parse_torchrec_plan(std::string_view text, const std::string& name,
                                                       const Dlrm& model, std::int64_t n_ranks);

}  // namespace stepcast
