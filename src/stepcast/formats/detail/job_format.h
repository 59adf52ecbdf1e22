// Formats in which a Job describes its training: how to recognise each, what it excludes, and who converts it
// into a model and a layout. resolve() uses the first format that matches.
//
//   const JobFormat& format = format_of(job);
//   STEPCAST_TRY(check_alone(format, job));      // "--config: given together with --torchtitan"
//   return format.resolve(job);
//
// To add a format, write a function NAME_format() and a line in job_formats.def.
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

// A source of a job other than settings: a command line or a config file.
enum class JobPart : std::uint8_t { command_line, torchtitan, deepspeed };

// A row of the table of formats.
struct JobFormat {
  std::string_view flag;  // flag that gives it; empty: several flags
  // Whether a job is in this format.
  bool (*is)(const Job& job);
  std::span<const JobPart> excludes;  // sources that it cannot be combined with
  Result<ResolvedJob> (*resolve)(const Job& job);
};

#define STEPCAST_JOB_FORMAT(name) JobFormat name##_format();
#include "stepcast/formats/detail/job_formats.def"
#undef STEPCAST_JOB_FORMAT

// The first format of the job; there is always one.
[[nodiscard]] const JobFormat& format_of(const Job& job);
// Errors: the job has a source that the format excludes. The error names both flags.
[[nodiscard]] Status check_alone(const JobFormat& format, const Job& job);

// The model that a job names by a preset or config.json, for formats that may contain a model themselves.
struct BaseModel {
  std::optional<Transformer> model;  // nothing: the job names no model
  std::vector<std::string> notes;    // of the reader of the model
};
// Errors: an unknown or unreadable model, an invalid number of GPUs per node.
[[nodiscard]] Result<BaseModel> base_model(const Job& job);
// Common last step of all formats: adds the notes of the model, and applies the expert load.
[[nodiscard]] Status finish(const Job& job, const BaseModel& base, ResolvedJob& result);

}  // namespace stepcast::detail
