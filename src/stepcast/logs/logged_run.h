// A training log as a whole: times, and the job that it tells.
//
//   STEPCAST_ASSIGN(const LoggedRun run, read_logged_run("train.log"));
//   run.times.median_ms; if (run.resolved) run.resolved->layout.degrees.tensor;
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "stepcast/base/result.h"
#include "stepcast/describe/job.h"
#include "stepcast/logs/logged_job.h"
#include "stepcast/logs/logged_times.h"
#include "stepcast/logs/training_log.h"

namespace stepcast {

struct LoggedRun {
  TrainingLog log;  // without its records
  LoggedTimes times;
  std::optional<LoggedJob> job;         // nothing: the log prints no settings, and nothing was said
  std::optional<ResolvedJob> resolved;  // what they come to
  std::string why_no_job;               // where one of the two is missing
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
