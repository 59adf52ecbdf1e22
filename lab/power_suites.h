// Scores what a power limit costs (power_limits.csv).
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "stepcast/base/result.h"
#include "stepcast/cost/node_power.h"

#include "lab/suite.h"

namespace stepcast {

// A training under a limit below the top one, beside the same at the top limit.
struct LimitedRun {
  std::string gpu, name;
  UncappedDraw draw;   // base_W: the smallest draw of any training on this GPU
  double limit_W = 0;  // of the driver
  double slow_down = 1, mean_W = 0;
};

// Least error of slow-down (that of all runs and that of those slowed by more than 5 %) and watts, each in its share of
// what must come out, by a search along the parameters.
[[nodiscard]] PowerLimitRule fitted_power_limit(const std::vector<LimitedRun>& runs);

// Tests, over rows below the top limit; sets are GPUs:
//   slow_down    (primary) time over that at the top limit; the rule is fitted on the other GPU
//   slowed_rows  those slowed by more than 5 %
//   watts        mean draw of the GPU
//   trivial_...  the same by max(1, P0 / L) and min(P0, L)
//   shipped_...  the same by the constants that ship, fitted on all rows
[[nodiscard]] Result<SuiteResult> validate_power_limits(const std::filesystem::path& data,
                                                        const SuiteOptions& options = {});

}  // namespace stepcast
