// The step that a prediction states, and its band: what it takes when the job repeats it, and how far times of GPU work,
// of the host and of the structure may be off.
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

struct RepeatedStep {
  Estimate time;
  std::optional<SettledStep> settled;  // where it differs from the step alone
};

// `scores`: of the edited step with its own costs. `base`: of the record; the band is at least as wide as it is off. Also says
// in `notes` what decides. Errors: those of score_replay().
[[nodiscard]] Result<RepeatedStep> estimate_step(EditedStep& step, const ReplayScores& scores,
                                                 const RecordedBase& base,
                                                 const TracePredictionOptions& options,
                                                 std::vector<std::string>& notes);

}  // namespace stepcast
