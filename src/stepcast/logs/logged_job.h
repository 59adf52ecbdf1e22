// What a training log says of the job that wrote it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "stepcast/base/result.h"
#include "stepcast/describe/job.h"
#include "stepcast/logs/logged_times.h"
#include "stepcast/logs/training_log.h"

namespace stepcast {

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

}  // namespace stepcast
