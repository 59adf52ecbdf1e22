// Chooses the reader of a Job by the sources that it has.
#include "stepcast/formats/detail/job_format.h"

#include <algorithm>
#include <array>
#include <string>

#include <fmt/format.h>

namespace stepcast {
namespace detail {
namespace {

// The flag of `stepcast predict` for a source of a job.
std::string_view flag_of(JobPart part) {
  switch (part) {
    case JobPart::command_line: return "--command-line";
    case JobPart::torchtitan: return "--torchtitan";
    case JobPart::deepspeed: return "--deepspeed";
  }
  return {};
}

// Whether the job has this source.
bool has(const Job& job, JobPart part) {
  switch (part) {
    case JobPart::command_line: return job.command_line.has_value();
    case JobPart::torchtitan: return job.torchtitan.has_value();
    case JobPart::deepspeed: return job.deepspeed.has_value();
  }
  return false;
}

}  // namespace

const JobFormat& format_of(const Job& job) {
  static const std::array kFormats{
#define STEPCAST_JOB_FORMAT(name) name##_format(),
#include "stepcast/formats/detail/job_formats.def"
#undef STEPCAST_JOB_FORMAT
  };
  // The last format accepts all jobs.
  const auto* const found =
      std::ranges::find_if(kFormats, [&](const JobFormat& format) { return format.is(job); });
  return found == kFormats.end() ? kFormats.back() : *found;
}

Status check_alone(const JobFormat& format, const Job& job) {
  const auto other = std::ranges::find_if(format.excludes, [&](JobPart part) { return has(job, part); });
  if (other == format.excludes.end()) return Ok{};
  return Error::at("", std::string{format.flag}, fmt::format("given together with {}", flag_of(*other)))
      .advice("each describes a whole training run: choose one");
}

}  // namespace detail

}  // namespace stepcast
