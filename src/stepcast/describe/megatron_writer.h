// Settings of a job -> flags of Megatron-LM, as parse_megatron_flags() reads them back.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "stepcast/describe/job.h"

namespace stepcast {

// "--tensor-model-parallel-size 8 --bf16 ...": one flag per setting, in the order of Megatron's groups. Settings that no
// flag can say (a switch that is off, and has no flag for that) are left out.
[[nodiscard]] std::string megatron_flags_of(const JobSettings& settings);

// Layers of every stage as a --pipeline-model-parallel-layout string, embedding (E), layers that predict further
// tokens (m) and loss (L) with them: "Et*2|(t*3|)*14t*2L". parse_pipeline_layout() reads it back.
[[nodiscard]] std::string pipeline_layout_string(std::span<const std::int64_t> layers_per_stage,
                                                 std::int64_t n_multi_token_prediction_layers);

}  // namespace stepcast
