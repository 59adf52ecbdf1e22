// Looks for the sharding with the shortest expected step that fits the memory of every rank: the mean of simulated steps
// over what the model of lookups may be wrong about (DlrmStepModel::expected_us). What is shortest by one model alone is
// so by that model's errors too.
//
//   STEPCAST_ASSIGN(DlrmStepModel steps, DlrmStepModel::create(model, training, platform, 8));
//   const SharderChoice found = search_sharding(steps);
//   found.plan, found.expected_us, found.fits
//
// Starts from the sharders and from tables placed by their own times, moves and swaps tables of the slowest rank,
// and splits what is larger or slower than a rank's share, where that is worth 2 % of the step: by columns, or by rows where no
// rank could hold it. Where
// nothing fits, tables that are looked up least per byte go to the memory of the host behind a cache, or the largest by rows
// over all ranks. Ends with a descent over all ways to keep a table (sharding_descent.h).
#pragma once

#include <cstddef>
#include <cstdint>

#include "stepcast/recommend/dlrm.h"

namespace stepcast {

class DlrmStepModel;

struct SearchOptions {
  std::uint64_t seed = 1;
  std::size_t max_evaluations = 800;  // of whole steps; where the memory of the GPUs suffices
  double max_seconds = 5;             // at most; results do not depend on it where it is not reached
  bool split = true;                  // tables over several ranks
  bool copies = true;                 // small tables on every rank
  bool host_memory = true;            // allowed where the GPUs' does not suffice
};

struct SharderChoice {
  ShardingPlan plan;
  double expected_us = 0;
  bool fits = false;
  std::size_t evaluations = 0;
  // No placement of whole tables is expected to be faster than this; `proved`: than `plan`.
  double least_expected_us = 0;
  bool proved = false;
};

[[nodiscard]] SharderChoice search_sharding(DlrmStepModel& steps, const SearchOptions& options = {});

// The best of all placements of whole tables, by branch and bound from `incumbent` (empty: none): tables from the dearest
// down, a branch ends where the tables placed so far take no less than the best known, without those that only rename
// ranks. For a dozen tables; stops with what it has after `max_evaluations`, and is `proved` where it did not.
// search_sharding() ends with it where tables are few.
[[nodiscard]] SharderChoice best_whole_tables(DlrmStepModel& steps, const ShardingPlan& incumbent = {},
                                              std::size_t max_evaluations = 2'000'000);

}  // namespace stepcast
