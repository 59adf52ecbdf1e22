// Rejects settings that the user gave and that have no effect on the resolved training step. Ignoring them
// silently would forecast another run than the user asked for.
//
//   STEPCAST_ASSIGN(ResolvedJob resolved, resolve(job));
//   STEPCAST_TRY(refuse_ignored_settings(job.settings, resolved));
#pragma once

#include <optional>
#include <string_view>

#include "stepcast/base/result.h"
#include "stepcast/describe/job.h"

namespace stepcast {

// The first flag in `said` that has a meaning only for mixture-of-experts models; nothing if there is none.
// An expert tensor-parallel degree of 1, or equal to the tensor-parallel degree, does not count: Megatron-LM
// prints it for every run.
[[nodiscard]] std::optional<std::string_view> flag_of_experts(const JobSettings& said);

// Error if flag_of_experts() finds a flag and `model` has no experts.
[[nodiscard]] Status refuse_flags_of_experts(const JobSettings& said, const Transformer& model);

// Errors: expert flags for a model without experts, a decoder length for a model without a decoder, a
// pipeline schedule without a pipeline, a number of recomputed layers without full recomputation,
// Newton-Schulz iterations for an optimizer other than Muon, and sequences longer than
// --max-position-embeddings (Megatron-LM refuses those for all kinds of positions). `said` is what the user
// typed. Do not call this for launch scripts: they often contain flags without effect, and still run.
[[nodiscard]] Status refuse_ignored_settings(const JobSettings& said, const ResolvedJob& job);

}  // namespace stepcast
