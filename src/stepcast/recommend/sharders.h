// The published sharders: they place whole tables by a cost of each table alone, and know no step.
//
//   for (const Sharder sharder : kSharders) ShardingPlan plan = shard(model, 4, sharder, {.memory_bytes = 30e9});
//
// Costs (Lin et al., table III): naive: table i on rank i mod n; random; size E; lookup L D; norm-lookup L / E;
// size-lookup L D log10 E, with E rows, D columns, L pooling factor. The greedy rule is that of the public DreamShard
// and NeuroShard code: from the most expensive table down, each on the rank with the smallest sum of costs among
// those with memory left, ties by the least memory used.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "stepcast/recommend/dlrm.h"
#include "stepcast/recommend/sharding_search.h"

namespace stepcast {

enum class Sharder : std::uint8_t { naive, random, size, lookup, norm_lookup, size_lookup };
inline constexpr std::array kSharders{Sharder::naive,  Sharder::random,      Sharder::size,
                                      Sharder::lookup, Sharder::norm_lookup, Sharder::size_lookup};
[[nodiscard]] std::string_view to_string(Sharder sharder);
[[nodiscard]] std::optional<Sharder> parse_sharder(std::string_view text);

struct SharderOptions {
  double memory_bytes = 0;  // of one rank for tables; 0: no limit
  // Of weights and optimizer state over those of the weights alone.
  double state_factor = 1;
  std::uint64_t seed = 1;  // of `random`
};

// A table that fits nowhere goes to the rank with the most memory left.
[[nodiscard]] ShardingPlan shard(const Dlrm& model, std::int64_t n_ranks, Sharder sharder,
                                 const SharderOptions& options = {});
[[nodiscard]] double sharder_cost(const EmbeddingTable& table, Sharder sharder);

// The sharding of planners that split tables by rows, as HugeCTR's: small tables on every rank, the others over as many
// ranks as give each an even share of the time, inside a node first.
//
//   const SharderChoice found = row_balanced_sharding(steps);
//
// NVIDIA's submissions of DCNv2 to MLPerf Training describe such a planner (`hier_auto`); how small a table has to be and
// how even the shares, it asks the simulated step here.

[[nodiscard]] SharderChoice row_balanced_sharding(DlrmStepModel& steps);

// How the software of the model itself spreads its tables. HugeCTR has popular rows of one-hot tables on every rank
// ("hybrid", a plan without tables) or splits tables by rows ("row_balanced"). Nothing of other software, and of tables
// that do not fit so.
[[nodiscard]] std::optional<ShardingPlan> stack_sharding(DlrmStepModel& steps);
// What stands for a sharding that nobody named: stack_sharding(), else what search_sharding() finds.
[[nodiscard]] ShardingPlan usual_sharding(DlrmStepModel& steps);

}  // namespace stepcast
