// A training log as a whole: times, and the job that it tells.
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

// What a training log says of the job that wrote it.

struct LoggedJob {
  Job job;
  std::string source;  // what it was read from: "Megatron's arguments"
  std::string gpu;     // as the log calls it; empty: not told
  std::optional<std::int64_t> evaluation_interval, checkpoint_interval;  // in steps
  std::vector<std::string> notes;  // what was taken from elsewhere than the settings
};

// The job of the settings that the log prints; `said` holds against it: its GPUs, model, framework and settings. An
// error where the log prints no settings and nothing is said, or where they do not describe a model.
[[nodiscard]] Result<LoggedJob> logged_job(const TrainingLog& log, const Job& said = {});

// How much a step of this job is, for rates in the log.
[[nodiscard]] LoggedWork work_of(const LoggedJob& logged, const ResolvedJob& job);
// The same where only flags say something: sequences, tokens, GPUs.
[[nodiscard]] LoggedWork work_of(const Job& said);

struct LoggedRun {
  TrainingLog log;  // without its records
  LoggedTimes times;
  std::optional<LoggedJob> job;         // nothing: the log prints no settings, and nothing was said
  std::optional<ResolvedJob> resolved;  // what they come to
  std::string why_no_job;               // where one of the two is missing
  // What the log and the flags leave open, so that a default stands for it: "layout", "sequence length", ...
  std::vector<std::string> not_said;
};

// `said` describes the run, or what of it the log does not tell. Errors: as of read_training_log() and logged_times();
// settings that cannot be read are no error, but a reason.
// `otherwise`: how much a step is, where neither the log nor `said` tells.
[[nodiscard]] Result<LoggedRun> read_logged_run(const std::filesystem::path& file, const Job& said = {},
                                                const LogReadOptions& options = {},
                                                const LoggedWork& otherwise = {});
[[nodiscard]] Result<LoggedRun> logged_run(TrainingLog log, const Job& said = {},
                                           const LoggedWork& otherwise = {});

}  // namespace stepcast
