// From the values of Megatron's flags to a model and a layout, with Megatron's defaults.
#pragma once

#include <optional>
#include <string>

#include "stepcast/base/result.h"
#include "stepcast/describe/described_job.h"
#include "stepcast/describe/detail/megatron_flags.h"

namespace stepcast::detail {

// Fills what depends on several flags, then checks the whole. `has_base`: the model was given, flags only
// change parts of it.
[[nodiscard]] Status finish_megatron_job(const MegatronScratch& scratch, bool has_base, DescribedJob& job);

// Megatron's --moe-layer-freq: a number, or a list such as "[0]*3+[1]*58" with an entry per layer. Sets the
// dense layers in front and the period behind; an error if the pattern is neither.
[[nodiscard]] Status read_moe_layer_pattern(std::string_view text, std::int64_t n_layers,
                                            MixtureOfExperts& moe);

}  // namespace stepcast::detail
