// Computes the predicted step time and its band from three error sources: GPU times, host times and the structure of the
// program. The time is that of a step in a sequence of equal steps.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "stepcast/base/result.h"
#include "stepcast/operation/estimate.h"
#include "stepcast/predict/replay.h"
#include "stepcast/predict/step_orbit.h"
#include "stepcast/rebuild/recorded_program.h"
#include "stepcast/retrace/prediction_options.h"
#include "stepcast/retrace/recorded_base.h"
#include "stepcast/retrace/step_edit.h"

namespace stepcast {

// The predicted step.
struct RepeatedStep {
  Estimate time;                       // length of the step with p10 and p90
  std::optional<SettledStep> settled;  // the step in steady state; absent if it equals the single step
};

// `scores`: replay of the edited step with its own costs. `base`: of the record; the band is at least as wide as the error of
// the unchanged replay. Appends to `notes` the causes that determine the result. Errors: those of score_replay().
[[nodiscard]] Result<RepeatedStep> estimate_step(EditedStep& step, const ReplayScores& scores,
                                                 const RecordedBase& base,
                                                 const TracePredictionOptions& options,
                                                 std::vector<std::string>& notes);

}  // namespace stepcast
