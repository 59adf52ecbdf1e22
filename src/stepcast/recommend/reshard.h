// A sharding for a new batch, decided while the job runs: reuse factors change from hour to hour, and with them the times
// of tables.
//
//   const Resharded next = reshard(steps, plan, reuse);      // reuse factors of every table
//   if (!next.moved_tables.empty()) ...                      // worth it
//
// Takes less than a millisecond for dozens of tables: moves and swaps of whole tables between the busiest rank and the
// least busy one, each asked of the step that is expected over the plausible models of lookups, as sharding searches do; no
// more than ReshardOptions::max_evaluations of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "stepcast/cost/access_pattern.h"
#include "stepcast/recommend/dlrm.h"

namespace stepcast {

class DlrmStepModel;

struct ReshardOptions {
  std::size_t max_evaluations = 12;  // of whole steps
  // A new sharding is taken from this gain on; tables have to travel.
  double least_gain = 0.02;
};

struct Resharded {
  ShardingPlan plan;                             // as before where nothing is gained
  double kept_step_us = 0, step_us = 0;          // with the new reuse factors: as before, and of `plan`
  double kept_expected_us = 0, expected_us = 0;  // the same over all plausible models, by which it decides
  std::vector<std::uint32_t> moved_tables;       // ascending
  double moved_bytes = 0;                        // weights and optimizer state
};

// For the lookups that `steps` is priced with.
[[nodiscard]] Resharded reshard(DlrmStepModel& steps, const ShardingPlan& now,
                                const ReshardOptions& options = {});
// Prices `steps` with the reuse factors [table] first; as many as it has tables.
[[nodiscard]] Resharded reshard(DlrmStepModel& steps, const ShardingPlan& now,
                                const std::vector<ReuseFactors>& reuse, const ReshardOptions& options = {});

}  // namespace stepcast
