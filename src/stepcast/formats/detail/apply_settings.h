// Applies the settings of a job to a model and a layout. Only fields that a setting names change.
#pragma once

#include "stepcast/base/result.h"
#include "stepcast/describe/job.h"

namespace stepcast::detail {

// Errors: a number below 0 or above 1e9, a degree outside 1 to 1e6. The error names the flag of Megatron-LM.
[[nodiscard]] Status check_numbers(const JobSettings& settings);
// LayerChoices::operator_launches for Megatron Core in eager mode: host time of an operator in kernel launches.
[[nodiscard]] double operator_launches(const JobSettings& settings);

// Applies the settings of the model. `has_base`: `model` is a given model that the settings change; otherwise
// the settings describe the whole model. Errors: missing or contradictory sizes.
[[nodiscard]] Status apply_to_model(const JobSettings& settings, bool has_base, Transformer& model);

// Applies degrees, batches and pipeline stages. The data-parallel degree is the number of GPUs divided by the
// other degrees, unless it is given.
[[nodiscard]] Status apply_to_degrees(const JobSettings& settings, ResolvedJob& job);

// Applies everything else: how layers are computed, sharding, overlap, recomputation, optimizer. The compute
// type is set by the caller before (software_defaults.h); settings for gradients and fp8 are applied on top.
[[nodiscard]] Status apply_choices(const JobSettings& settings, Layout& layout);

}  // namespace stepcast::detail
