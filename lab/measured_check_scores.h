// "Is my number normal?" (analyze/measured_check.h), asked of published steps.
#pragma once

#include <vector>

#include "lab/run_platforms.h"
#include "lab/suite.h"

namespace stepcast {

// Of every set and GPU at most 24 runs: each is held against the forecast of what it ran, which is normal, and against that
// of a job that is falsified in one setting (the recomputation, the batch, the sequence, the type of the products), which is
// not. Extras: `right_n` verdicts of `steps_n`; percent: `normal_right`, `falsified_right`; of the falsified that were found,
// `first_cause_right` and `cause_right`, where the first cause that is named, or one of them, is what was falsified.
[[nodiscard]] TestScore score_measured_checks(const std::vector<const LlmRun*>& runs,
                                              RunPlatforms& platforms);

}  // namespace stepcast
