// Settings of a job -> flags of Megatron-LM, as parse_megatron_flags() reads them back.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "stepcast/describe/job.h"

namespace stepcast {

// "--tensor-model-parallel-size 8 --bf16 ...": one flag per setting, in the order of Megatron's groups. Settings that no
// flag can say (a switch that is off, and has no flag for that) are left out.
[[nodiscard]] std::string megatron_flags_of(const JobSettings& settings);

// Layers of every stage as a --pipeline-model-parallel-layout string, embedding (E), layers that predict further
// tokens (m) and loss (L) with them: "Et*2|(t*3|)*14t*2L". parse_pipeline_layout() reads it back.
[[nodiscard]] std::string pipeline_layout_string(std::span<const std::int64_t> layers_per_stage,
                                                 std::int64_t n_multi_token_prediction_layers);

// The table of arguments that Megatron-LM prints when it starts -> a command line.
// `arguments` are names and values as Python prints them ("num_layers", "32"), all of them, defaults and what Megatron
// computed included. The command line has the flags that say the same to parse_megatron_command_line(): those that it
// understands, and switched-on ones that it lists as not modelled. `is_bert`: pretrain_bert.py ran.
[[nodiscard]] std::string command_line_of_arguments(
    std::span<const std::pair<std::string, std::string>> arguments, bool is_bert);

}  // namespace stepcast
