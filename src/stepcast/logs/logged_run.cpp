#include "stepcast/logs/logged_run.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace stepcast {
namespace {

// The lines of the steps say what ran; settings may be those of another start, or of a batch that grows. False where
// nothing has changed.
bool take_batch_of_lines(const Job& said, LoggedRun& run) {
  if (!run.resolved || run.times.batch_sequences == 0) return false;
  const std::int64_t told = run.times.batch_sequences;
  const std::int64_t planned = run.resolved->layout.batch.global_batch_sequences;
  if (told == planned) return false;
  std::vector<std::string>& notes = run.job->notes;
  if (const auto& flag = said.settings.global_batch_sequences) {
    // Columns of tables are called as people like: of all GPUs, of one.
    if (run.times.format == LogFormat::csv) {
      notes.push_back(
          fmt::format("the rows have a batch size of {}; taken are the {} sequences of --gbs", told, *flag));
      return false;
    }
    run.resolved.reset();
    run.why_no_job = Error::at("", "--gbs")
                         .found(fmt::format("{}, where the lines of the steps say {} sequences", *flag, told))
                         .advice("leave it out: the lines hold")
                         .message();
    return false;
  }
  const std::vector<std::string>& assumed = run.resolved->notes;
  const bool was_assumed = std::ranges::any_of(
      assumed, [](const std::string& note) { return note.starts_with("global batch not given"); });
  const std::string instead = was_assumed ? "" : fmt::format(", where the settings say {}", planned);
  run.job->job.settings.global_batch_sequences = told;
  Result<ResolvedJob> resolved = resolve(run.job->job);
  if (!resolved) {
    run.resolved.reset();
    run.why_no_job = fmt::format("the lines of the steps say {} sequences{}: {}", told, instead,
                                 resolved.error().message());
    return false;
  }
  run.resolved = *std::move(resolved);
  notes.push_back(fmt::format("{} sequences per step, as the lines of the steps say{}", told, instead));
  return true;
}

}  // namespace

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
  if (take_batch_of_lines(said, run)) {
    STEPCAST_ASSIGN(run.times, logged_times(log, work_of(*run.job, *run.resolved)));
  }
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
