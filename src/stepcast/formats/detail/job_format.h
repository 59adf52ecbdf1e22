// The ways in which a Job describes its training: how each is recognised, what excludes it, and who makes model and layout of
// it. resolve() visits the first one that the job is.
//
//   const JobFormat& format = format_of(job);
//   STEPCAST_TRY(check_alone(format, job));      // "--config: given together with --torchtitan"
//   return format.resolve(job);
//
// A format is a function NAME_format() and its line in job_formats.def.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "stepcast/base/result.h"
#include "stepcast/describe/job.h"

namespace stepcast::detail {

// A file or command line of a job, by the flag of `stepcast predict` that gives it.
enum class JobPart : std::uint8_t { command_line, torchtitan, deepspeed };

struct JobFormat {
  std::string_view flag;  // that gives it; empty: several
  bool (*is)(const Job& job);
  std::span<const JobPart> excludes;  // what it cannot be given together with
  Result<ResolvedJob> (*resolve)(const Job& job);
};

#define STEPCAST_JOB_FORMAT(name) JobFormat name##_format();
#include "stepcast/formats/detail/job_formats.def"
#undef STEPCAST_JOB_FORMAT

[[nodiscard]] const JobFormat& format_of(const Job& job);
// Error: the first part that the format excludes and the job has.
[[nodiscard]] Status check_alone(const JobFormat& format, const Job& job);

// For formats that say a model or take one from the job.
struct BaseModel {
  std::optional<Transformer> model;  // that the job names
  std::vector<std::string> notes;    // of its reader
};
// Errors: a model that is not there or cannot be read; GPUs of a node that no node has.
[[nodiscard]] Result<BaseModel> base_model(const Job& job);
// What holds for every format: notes of the model, and the load of experts.
[[nodiscard]] Status finish(const Job& job, const BaseModel& base, ResolvedJob& result);

}  // namespace stepcast::detail
