// Settings that somebody typed and that do nothing in the step that came of them: a forecast that leaves them out
// without a word answers another question than the one that was asked.
//
//   STEPCAST_ASSIGN(ResolvedJob resolved, resolve(job));
//   STEPCAST_TRY(refuse_ignored_settings(job.settings, resolved));
#pragma once

#include <optional>
#include <string_view>

#include "stepcast/base/result.h"
#include "stepcast/describe/job.h"

namespace stepcast {

// A flag of `said` that means something for experts alone; nothing if there is none. A tensor-parallel degree of experts
// like that of the rest is what Megatron prints of every run, and is none.
[[nodiscard]] std::optional<std::string_view> flag_of_experts(const JobSettings& said);

// Errors: such a flag, for a model without experts.
[[nodiscard]] Status refuse_flags_of_experts(const JobSettings& said, const Transformer& model);

// Errors: flags of experts for a model without; a schedule without a pipeline; layers to recompute where no whole layers
// are; sequences longer than --max-position-embeddings, which Megatron-LM refuses whatever the positions are. `said` is
// what was typed; launch scripts hold flags that do nothing, and run.
[[nodiscard]] Status refuse_ignored_settings(const JobSettings& said, const ResolvedJob& job);

}  // namespace stepcast
