// The step that a prediction states, and its band: what it takes when the job repeats it, and how far times of GPU work,
// of the host and of the structure may be off.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "stepcast/base/result.h"
#include "stepcast/operation/estimate.h"
#include "stepcast/predict/replay.h"
#include "stepcast/retrace/prediction_options.h"
#include "stepcast/retrace/step_edit.h"
#include "stepcast/trace/recorded_program.h"

namespace stepcast {

// The longest step of a job that repeats it. The CPU of one step alone may run ahead of its GPU to the end; in a row of
// steps it is held back by full launch queues and by copies, and a step takes what its GPU work takes. Steps that were
// recorded so already are left as they are.
struct RepeatedStep {
  double us = 0;
  RankClassId rank{};                     // where GPU work sets it: whose,
  std::vector<std::uint32_t> tasks = {};  // and what of its block, one behind the other; else empty
};
[[nodiscard]] RepeatedStep repeated_step(const RecordedProgram& recorded, const Costs& costs,
                                         double longest_us);

// `scores`: of the edited step with its own costs. Also says in `notes` what decides. Errors: those of score_replay().
[[nodiscard]] Result<Estimate> estimate_step(EditedStep& step, const ReplayScores& scores,
                                             const TracePredictionOptions& options,
                                             std::vector<std::string>& notes);

}  // namespace stepcast
