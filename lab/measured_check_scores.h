// Scores "Is my number normal?" (analyze/measured_check.h) on published steps.
#pragma once

#include <vector>

#include "lab/run_platforms.h"
#include "lab/suite.h"

namespace stepcast {

// At most 24 runs of every set and GPU. Each is compared with the forecast of its own job, where "normal" is right, and with
// that of a job with one falsified setting (recomputation, batch, sequence, GEMM type), where it is not. Extras: `right_n`
// verdicts of `steps_n`; percent: `normal_right`, `falsified_right`; of the detected falsified jobs, `first_cause_right` and
// `cause_right`: the first named cause, or any of them, is the falsified setting.
[[nodiscard]] TestScore score_measured_checks(const std::vector<const LlmRun*>& runs,
                                              RunPlatforms& platforms);

}  // namespace stepcast
