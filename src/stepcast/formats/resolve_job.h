// What a Job comes to: the model and the layout, from whatever it was described with.
//
//   STEPCAST_ASSIGN(const ResolvedJob resolved, resolve(job));
//   // resolved.model, resolved.layout; resolved.notes: "micro-batch size not given: 1", ...
//
// The format that describes the job (flags, a Megatron-LM command line, a framework's config) is recognised in
// detail/job_formats.def.
#pragma once

#include "stepcast/base/result.h"
#include "stepcast/describe/job.h"

namespace stepcast {

// Model and layout, checked. Errors: nothing describes a model; a file or a setting that cannot be understood,
// that contradicts another, or that cannot be applied to the file it stands beside; a layout that cannot run.
[[nodiscard]] Result<ResolvedJob> resolve(const Job& job);

}  // namespace stepcast
