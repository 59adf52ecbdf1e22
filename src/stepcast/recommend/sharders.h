// The published sharders. They place whole tables by a cost of each table alone and do not consider the step.
//
//   for (const Sharder sharder : kSharders) ShardingPlan plan = shard(model, 4, sharder, {.memory_bytes = 30e9});
//
// Costs (Lin et al., table III), with E rows, D columns and pooling factor L. naive: table i on rank i mod n.
// random. size: E. lookup: L D. norm_lookup: L / E. size_lookup: L D log10 E. The greedy rule is that of the
// public code of DreamShard and NeuroShard: tables in order of falling cost, each on the rank with the
// smallest sum of costs that has memory left. Ties go to the rank with least memory used.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "stepcast/recommend/dlrm.h"
#include "stepcast/recommend/sharding_search.h"

namespace stepcast {

// The rules, in the order above.
enum class Sharder : std::uint8_t { naive, random, size, lookup, norm_lookup, size_lookup };
inline constexpr std::array kSharders{Sharder::naive,  Sharder::random,      Sharder::size,
                                      Sharder::lookup, Sharder::norm_lookup, Sharder::size_lookup};
// The name in JSON and on the command line: "size_lookup".
[[nodiscard]] std::string_view to_string(Sharder sharder);
// The sharder with this name, also with '-' or the suffix "_greedy"; empty if it is unknown.
[[nodiscard]] std::optional<Sharder> parse_sharder(std::string_view text);

// Limits for the greedy sharders.
struct SharderOptions {
  double memory_bytes = 0;  // of one rank for tables; 0: no limit
  // Bytes of weights and optimizer state, relative to the weights alone.
  double state_factor = 1;
  std::uint64_t seed = 1;  // only for `random`
};

// A sharding by one of these rules. A table that does not fit on any rank goes to the rank with most memory
// left.
[[nodiscard]] ShardingPlan shard(const Dlrm& model, std::int64_t n_ranks, Sharder sharder,
                                 const SharderOptions& options = {});
// The cost of a table by this rule; 0 for naive and random.
[[nodiscard]] double sharder_cost(const EmbeddingTable& table, Sharder sharder);

// The sharding of planners that split tables by rows, as HugeCTR's does: small tables on every rank, the
// others over the number of ranks that gives each rank an even share of the time, within a node first.
//
//   const SharderChoice found = row_balanced_sharding(steps);
//
// NVIDIA's submissions of DCNv2 to MLPerf Training describe such a planner (`hier_auto`). The size limit for
// copied tables and the evenness of shares are chosen here by the expected step time.

[[nodiscard]] SharderChoice row_balanced_sharding(DlrmStepModel& steps);

// The sharding that the model's software would use. HugeCTR copies popular rows of one-hot tables to every
// rank ("hybrid", a plan without tables), or splits tables by rows ("row_balanced"). Empty for other
// software, and if the tables do not fit in this way.
[[nodiscard]] std::optional<ShardingPlan> stack_sharding(DlrmStepModel& steps);
// The default sharding if the user gives none: stack_sharding(), else the result of search_sharding().
[[nodiscard]] ShardingPlan usual_sharding(DlrmStepModel& steps);

}  // namespace stepcast
