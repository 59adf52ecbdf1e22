// Turns a Job into a model and a layout, from any description.
//
//   STEPCAST_ASSIGN(const ResolvedJob resolved, resolve(job));
//   // resolved.model, resolved.layout; resolved.notes: "micro-batch size not given: 1", ...
//
// The format (flags, a Megatron-LM command line, a framework's config) is recognised by the table in
// detail/job_formats.def.
#pragma once

#include "stepcast/base/result.h"
#include "stepcast/describe/job.h"

namespace stepcast {

// The checked model and layout of a job. Errors: no model; files or settings that are invalid, contradict
// each other or cannot be combined; a layout that cannot run.
[[nodiscard]] Result<ResolvedJob> resolve(const Job& job);

}  // namespace stepcast
