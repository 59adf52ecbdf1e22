// Scores the cost of a power limit (power_limits.csv).
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "stepcast/base/result.h"
#include "stepcast/cost/node_power.h"

#include "lab/suite.h"

namespace stepcast {

// A training below the top limit, and the same training at the top limit.
struct LimitedRun {
  std::string gpu, name;
  UncappedDraw draw;   // base_W: the smallest draw of any training on this GPU
  double limit_W = 0;  // of the driver
  double slow_down = 1, mean_W = 0;
};

// Fits the rule: least errors of slow-down (of all runs, and of those slowed by more than 5 %) and of watts, each relative
// to its target, by a search along the parameters.
[[nodiscard]] PowerLimitRule fitted_power_limit(const std::vector<LimitedRun>& runs);

// Tests, over rows below the top limit; sets are GPUs:
//   slow_down    (primary) time over that at the top limit; the rule is fitted on the other GPU
//   slowed_rows  those slowed by more than 5 %
//   watts        mean draw of the GPU
//   trivial_...  the same by max(1, P0 / L) and min(P0, L)
//   shipped_...  the same by the shipped constants, fitted on all rows
[[nodiscard]] Result<SuiteResult> validate_power_limits(const std::filesystem::path& data,
                                                        const SuiteOptions& options = {});

}  // namespace stepcast
