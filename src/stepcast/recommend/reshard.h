// A new sharding for a new batch, decided while the job runs. Reuse factors change from hour to hour, and
// with them the lookup times of tables.
//
//   const Resharded next = reshard(steps, plan, reuse);      // reuse factors of every table
//   if (!next.moved_tables.empty()) ...                      // worth it
//
// Takes less than a millisecond for dozens of tables. It moves and swaps whole tables between the slowest and
// the fastest rank. Each step of this search evaluates the expected step time over the plausible models of
// lookups, as sharding searches do, at most ReshardOptions::max_evaluations times.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "stepcast/cost/access_pattern.h"
#include "stepcast/recommend/dlrm.h"

namespace stepcast {

class DlrmStepModel;

// Limits of the search.
struct ReshardOptions {
  std::size_t max_evaluations = 12;  // evaluations of the step time
  // Least relative gain for which a new sharding is returned, since moving tables has a cost.
  double least_gain = 0.02;
};

// The result.
struct Resharded {
  ShardingPlan plan;  // the previous plan if nothing is gained
  // Step time in microseconds with the new reuse factors: of the previous plan, and of `plan`.
  double kept_step_us = 0, step_us = 0;
  // The same averaged over the plausible models, by which plans are compared.
  double kept_expected_us = 0, expected_us = 0;
  std::vector<std::uint32_t> moved_tables;  // in ascending order
  // Bytes of weights and optimizer state of these tables.
  double moved_bytes = 0;
};

// Reshards for the lookups with which `steps` is priced.
[[nodiscard]] Resharded reshard(DlrmStepModel& steps, const ShardingPlan& now,
                                const ReshardOptions& options = {});
// Sets the reuse factors of `steps` first: [table], one per table.
[[nodiscard]] Resharded reshard(DlrmStepModel& steps, const ShardingPlan& now,
                                const std::vector<ReuseFactors>& reuse, const ReshardOptions& options = {});

}  // namespace stepcast
