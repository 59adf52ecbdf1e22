// What one measured step, or three, are worth to the forecasts of the others of its set (predict/anchor.h).
#pragma once

#include <vector>

#include "stepcast/base/result.h"

#include "calibrate/llm_runs.h"
#include "lab/run_platforms.h"
#include "lab/suite.h"

namespace stepcast {

// Of every set and GPU with at least four runs, all but one and all but three runs left out: each run alone is the anchor of
// all others ("anchored_on_one"), or three that are drawn ("anchored_on_three"). Beside it in every set, percent: `none_mape`,
// without an anchor, and `factor_mape`, with the median of measured over forecast of the given ones as one factor for all.
[[nodiscard]] std::vector<TestScore> score_anchored(const std::vector<LlmRun>& runs, RunPlatforms& platforms);

// The same of few GPUs whose own records are taken away: sets with at least 40 dense runs ("unmeasured_gpu_anchored_on_one").
[[nodiscard]] Result<std::vector<TestScore>> score_anchored_without_records(const std::vector<LlmRun>& runs,
                                                                            const RunPlatforms& platforms);

}  // namespace stepcast
