// DeepSpeed configs (JSON) -> layout. Such a file says how one replica's ranks train; model and model
// parallelism come from the base.
//
//   Job job{.model = "llama-2-7b", .n_gpus = 64};
//   STEPCAST_ASSIGN(job.deepspeed, read_config_text("ds_config.json"));
//   STEPCAST_ASSIGN(const ResolvedJob resolved, resolve(job));
//
// Values "auto", which integrations fill in, count as not there. Keys that change time or memory and are not
// modelled are listed; unknown ones are errors.
#pragma once

#include <string>
#include <string_view>

#include "stepcast/base/result.h"
#include "stepcast/describe/job.h"

namespace stepcast {

// `base`: model, degrees, sequence length, and what else the file does not say; base.n_gpus, if given, sets
// the data-parallel degree. `said`: settings that hold against the file. `name` stands for the text in errors.
// The layout is not checked yet.
[[nodiscard]] Result<ResolvedJob> parse_deepspeed_config(std::string_view text, const std::string& name,
                                                         const ResolvedJob& base,
                                                         const JobSettings& said = {});

}  // namespace stepcast
