// Searches for the sharding with the shortest expected step that fits the memory of every rank. The expected
// step is the mean of simulated steps over plausible models of lookups (DlrmStepModel::expected_us). The
// minimum by a single model would also be a minimum of its errors.
//
//   STEPCAST_ASSIGN(DlrmStepModel steps, DlrmStepModel::create(model, training, platform, 8));
//   const SharderChoice found = search_sharding(steps);
//   found.plan, found.expected_us, found.fits
//
// The search starts from the sharders and from tables placed by their times, and moves and swaps tables of
// the slowest rank. It splits tables that are larger or slower than a rank's share if that gains at least 2
// %: by columns, or by rows if no rank has enough memory. If nothing fits, the tables with least lookups per
// byte go to host memory behind a cache, or the largest tables are split by rows over all ranks. It ends with
// a descent over all placements of a table (sharding_descent.h).
#pragma once

#include <cstddef>
#include <cstdint>

#include "stepcast/recommend/dlrm.h"

namespace stepcast {

class DlrmStepModel;

// Limits and options of a search. The same options and seed give the same result, unless the time limit is
// reached.
struct SearchOptions {
  std::uint64_t seed = 1;
  std::size_t max_evaluations = 800;  // evaluations of the step time, if GPU memory suffices
  double max_seconds = 5;             // time limit
  bool split = true;                  // tables may be split over several ranks
  bool copies = true;                 // small tables may be on every rank
  bool host_memory = true;            // host memory may be used if GPU memory does not suffice
};

// The result of a search or of a planner.
struct SharderChoice {
  ShardingPlan plan;
  // Expected step time in microseconds.
  double expected_us = 0;
  // The plan fits the memory of all ranks.
  bool fits = false;
  // Number of step times that were evaluated.
  std::size_t evaluations = 0;
  // Lower bound of the expected step time for placements of whole tables. `proved`: no such placement is
  // faster than `plan`.
  double least_expected_us = 0;
  bool proved = false;
};

// Searches for the best sharding. Stops early if the user interrupts it.
[[nodiscard]] SharderChoice search_sharding(DlrmStepModel& steps, const SearchOptions& options = {});

// The best placement of whole tables, by branch and bound from `incumbent` (may be empty). Tables are placed
// in order of falling lookup time. A branch ends if the tables placed so far take at least as long as the
// best known plan. Placements that only rename ranks are visited once. Suitable for about a dozen tables.
// Stops with the best plan so far after `max_evaluations`; `proved` is set if it did not stop.
// search_sharding() calls it if there are few tables.
[[nodiscard]] SharderChoice best_whole_tables(DlrmStepModel& steps, const ShardingPlan& incumbent = {},
                                              std::size_t max_evaluations = 2'000'000);

}  // namespace stepcast
