// Runs of language models as rows of a validation suite, and which of them are of the newest release of their software.
#pragma once

#include <string>
#include <vector>

#include "stepcast/workload/layout.h"

#include "calibrate/llm_runs.h"
#include "lab/metrics.h"
#include "lab/run_platforms.h"
#include "lab/suite.h"

namespace stepcast {

// "tp8 pp4x2 cp1 ...".
[[nodiscard]] std::string layout_text(const Layout& layout);

[[nodiscard]] ScoredRow scored(const PredictedRun& p);
[[nodiscard]] double measured_over_predicted(const PredictedRun& p);

// Those that say their release (LlmRun::layout.software.version), of every model, GPU and type of a set the last one.
[[nodiscard]] std::vector<LlmRun> newest_releases(const std::vector<LlmRun>& runs);

// The newest releases alone, by set.
[[nodiscard]] TestScore score_newest_releases(const std::vector<PredictedRun>& runs);
// Runs of models with experts, a set for every release: how software that changes moves the bias.
[[nodiscard]] TestScore score_by_release(const std::vector<PredictedRun>& runs);

}  // namespace stepcast
