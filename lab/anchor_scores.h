// Scores how much one or three measured steps improve the forecasts of the other runs of their set (predict/anchor.h).
#pragma once

#include <vector>

#include "stepcast/base/result.h"

#include "calibrate/llm_runs.h"
#include "lab/run_platforms.h"
#include "lab/suite.h"

namespace stepcast {

// For every set and GPU with at least four runs: each run alone is the anchor of all others ("anchored_on_one"), or three
// random runs are ("anchored_on_three"). Extras of each set, percent: `none_mape`, the error without an anchor, and
// `factor_mape`, the error with the median of measured over forecast of the anchors as one factor for all runs.
[[nodiscard]] std::vector<TestScore> score_anchored(const std::vector<LlmRun>& runs, RunPlatforms& platforms);

// The same for a GPU without its own records: sets with at least 40 dense runs ("unmeasured_gpu_anchored_on_one").
[[nodiscard]] Result<std::vector<TestScore>> score_anchored_without_records(const std::vector<LlmRun>& runs,
                                                                            const RunPlatforms& platforms);

}  // namespace stepcast
