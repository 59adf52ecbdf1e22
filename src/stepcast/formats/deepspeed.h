// Reads DeepSpeed configs (JSON) into a layout. Such a config describes how the ranks of one replica train;
// the model and the model parallelism come from elsewhere.
//
//   Job job{.model = "llama-2-7b", .n_gpus = 64};
//   STEPCAST_ASSIGN(job.deepspeed, read_config_text("ds_config.json"));
//   STEPCAST_ASSIGN(const ResolvedJob resolved, resolve(job));
//
// Values "auto", which integrations fill in later, count as missing. Keys that change time or memory and are
// not modelled are listed in ResolvedJob::not_modelled. Unknown keys are errors.
#pragma once

#include <string>
#include <string_view>

#include "stepcast/base/result.h"
#include "stepcast/describe/job.h"

namespace stepcast {

// `base`: model, degrees, sequence length, and all that the file does not contain. base.n_gpus, if given,
// determines the data-parallel degree. `said`: settings that override the file. `name` denotes the file in
// errors. The resulting layout is not checked here.
[[nodiscard]] Result<ResolvedJob> parse_deepspeed_config(std::string_view text, const std::string& name,
                                                         const ResolvedJob& base,
                                                         const JobSettings& said = {});

}  // namespace stepcast
