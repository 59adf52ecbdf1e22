// Settings of a job put upon a model and a layout. Everything here only changes what a setting names.
#pragma once

#include "stepcast/base/result.h"
#include "stepcast/describe/job.h"

namespace stepcast::detail {

// Numbers that no count can be: below 0 or above 1e9, degrees that are not 1 to 1e6. The error names the flag.
[[nodiscard]] Status check_numbers(const JobSettings& settings);
// LayerChoices::operator_launches of Megatron Core run eagerly.
[[nodiscard]] double operator_launches(const JobSettings& settings);

// `has_base`: the model was given and settings change parts of it; else they are all of it.
[[nodiscard]] Status apply_to_model(const JobSettings& settings, bool has_base, Transformer& model);

// Degrees, batches and stages; the data-parallel degree is what `job.n_gpus` leave unless it is said.
[[nodiscard]] Status apply_to_degrees(const JobSettings& settings, ResolvedJob& job);

// All the rest: how layers are computed, what is sharded, overlapped and recomputed. The element type is the
// caller's (software_defaults.h); what settings say about gradients and fp8 comes on top of it.
[[nodiscard]] Status apply_choices(const JobSettings& settings, Layout& layout);

}  // namespace stepcast::detail
