// What a run needs to know of a job whose step is priced: also how long it evaluates, and when it stops.
#pragma once

#include "stepcast/base/result.h"
#include "stepcast/describe/job.h"
#include "stepcast/predict/step_model.h"
#include "stepcast/run/run_job.h"

namespace stepcast {

// run_job_of() on the platform of `steps`, with the routine; a batch of evaluation takes the forward passes of the step.
// Errors: those of a prediction.
[[nodiscard]] Result<RunJob> routine_job(const TrainingRoutine& routine, const Transformer& model,
                                         const Layout& layout, const StepModel& steps, double step_s);

}  // namespace stepcast
