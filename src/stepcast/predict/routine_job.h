// Turns a priced step into a RunJob: the description of a training run with checkpoints and evaluation.
#pragma once

#include "stepcast/base/result.h"
#include "stepcast/describe/job.h"
#include "stepcast/predict/step_model.h"
#include "stepcast/run/run_job.h"

namespace stepcast {

// run_job_of() on the platform of `steps`, with the intervals of `routine`. `step_s`: step time in seconds. A
// batch of evaluation takes as long as the forward passes of a step. Errors: those of a prediction.
[[nodiscard]] Result<RunJob> routine_job(const TrainingRoutine& routine, const Transformer& model,
                                         const Layout& layout, const StepModel& steps, double step_s);

}  // namespace stepcast
