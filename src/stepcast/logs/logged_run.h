// A training log as a whole: step times, and the job that wrote it.
//
//   STEPCAST_ASSIGN(const LoggedRun run, read_logged_run("train.log"));
//   run.times.median_ms; if (run.resolved) run.resolved->layout.degrees.tensor;
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "stepcast/base/result.h"
#include "stepcast/describe/job.h"
#include "stepcast/logs/logged_times.h"
#include "stepcast/logs/training_log.h"

namespace stepcast {

// What a training log says about the job that wrote it.

struct LoggedJob {
  // The settings as a job description, after overrides.
  Job job;
  std::string source;  // where the settings were read: "Megatron's arguments"
  std::string gpu;     // name of the GPU in the log; empty: not printed
  std::optional<std::int64_t> evaluation_interval, checkpoint_interval;  // in steps
  std::vector<std::string> notes;  // settings that did not come from the settings of the log
};

// The job described by the settings in the log. `said` overrides its GPUs, model, framework and settings.
// Errors: neither the log nor `said` has settings; they do not describe a model.
[[nodiscard]] Result<LoggedJob> logged_job(const TrainingLog& log, const Job& said = {});

// The amount of work in a step of this job, which converts rates in the log to times.
[[nodiscard]] LoggedWork work_of(const LoggedJob& logged, const ResolvedJob& job);
// The same from flags alone: sequences, tokens and GPUs, as far as they are given.
[[nodiscard]] LoggedWork work_of(const Job& said);

// A log that was read: its times and its job.
struct LoggedRun {
  TrainingLog log;  // `steps` is empty, to save memory
  LoggedTimes times;
  std::optional<LoggedJob> job;         // none: the log has no settings and none were given
  std::optional<ResolvedJob> resolved;  // the job with all defaults filled in; none: it cannot be resolved
  std::string why_no_job;               // the reason if `job` or `resolved` is missing
  // Settings that neither the log nor the flags give, so that defaults are used: "layout", "sequence length",
  // ...
  std::vector<std::string> not_said;
};

// Reads a log and its job. `said` describes the run, or the part that the log does not contain. `otherwise`
// is the work per step if neither of them gives it. Errors: those of read_training_log() and logged_times().
// Settings that cannot be read are not an error; `why_no_job` gives the reason.
[[nodiscard]] Result<LoggedRun> read_logged_run(const std::filesystem::path& file, const Job& said = {},
                                                const LogReadOptions& options = {},
                                                const LoggedWork& otherwise = {});
// The same for a log in memory.
[[nodiscard]] Result<LoggedRun> logged_run(TrainingLog log, const Job& said = {},
                                           const LoggedWork& otherwise = {});

}  // namespace stepcast
