#include "stepcast/predict/routine_job.h"

#include "stepcast/base/number.h"

namespace stepcast {

Result<RunJob> routine_job(const TrainingRoutine& routine, const Transformer& model, const Layout& layout,
                           const StepModel& steps, double step_s) {
  STEPCAST_ASSIGN(RunJob job, run_job_of(model, layout, steps.platform(), step_s));
  job.save_interval = as_double(routine.save_interval);
  job.saves_asynchronously = routine.saves_asynchronously;
  if (routine.evaluation_interval < 1 || routine.evaluation_batches < 1) return job;
  job.evaluation_interval = as_double(routine.evaluation_interval);
  job.evaluation_batches = as_double(routine.evaluation_batches);
  // Only the share of the forward passes comes from the forecast; the step time is given.
  STEPCAST_ASSIGN(const PricedStep priced, steps.price(model, layout));
  const StepPrediction step = steps.predict(priced, layout);
  job.forward_s = step_s * forward_us(priced, step) / step.step.time.value();
  return job;
}

}  // namespace stepcast
