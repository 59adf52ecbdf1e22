// How slow the slowest steps of long runs are: run/step_spread.h beside a constant ratio.
#pragma once

#include <filesystem>
#include <vector>

#include "stepcast/base/result.h"

#include "lab/suite.h"

namespace stepcast {

// p99 over p50 of `field/step_distributions.csv`, of series of single steps: with the jitter fitted to the others' p90 and
// p99, with the shipped one, and the constant. Nothing where the file is missing. Errors: columns that are not there.
[[nodiscard]] Result<std::vector<TestScore>> run_tails(const std::filesystem::path& folder);

}  // namespace stepcast
