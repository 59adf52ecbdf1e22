#include "stepcast/logs/logged_run.h"

#include <utility>

namespace stepcast {

Result<LoggedRun> logged_run(TrainingLog log, const Job& said, const LoggedWork& otherwise) {
  LoggedRun run;
  LoggedWork work = work_of(said);
  if (Result<LoggedJob> job = logged_job(log, said)) {
    if (Result<ResolvedJob> resolved = resolve(job->job)) {
      work = work_of(*job, *resolved);
      run.resolved = *std::move(resolved);
    } else {
      run.why_no_job = resolved.error().message();
    }
    run.job = *std::move(job);
  } else {
    run.why_no_job = job.error().message();
  }
  if (!work.samples_per_step) work.samples_per_step = otherwise.samples_per_step;
  if (!work.tokens_per_step) work.tokens_per_step = otherwise.tokens_per_step;
  if (!work.n_gpus) work.n_gpus = otherwise.n_gpus;
  STEPCAST_ASSIGN(run.times, logged_times(log, work));
  log.steps = std::vector<LoggedStep>{};  // and its memory
  run.log = std::move(log);
  return run;
}

Result<LoggedRun> read_logged_run(const std::filesystem::path& file, const Job& said,
                                  const LogReadOptions& options, const LoggedWork& otherwise) {
  STEPCAST_ASSIGN(TrainingLog log, read_training_log(file, options));
  return logged_run(std::move(log), said, otherwise);
}

}  // namespace stepcast
