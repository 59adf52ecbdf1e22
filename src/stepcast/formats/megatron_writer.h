// Writes settings of a job as flags of Megatron-LM, which parse_megatron_flags() reads back.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "stepcast/describe/job.h"

namespace stepcast {

// "--tensor-model-parallel-size 8 --bf16 ...": one flag per setting, in the order of Megatron-LM's groups.
// Settings that no flag can express are left out, such as a switch that is off and has no flag for it.
[[nodiscard]] std::string megatron_flags_of(const JobSettings& settings);

// Layers per stage as a --pipeline-model-parallel-layout string, with the embedding (E), multi-token
// prediction layers (m) and the loss (L): "Et*2|(t*3|)*14t*2L". parse_pipeline_layout() reads it back.
[[nodiscard]] std::string pipeline_layout_string(std::span<const std::int64_t> layers_per_stage,
                                                 std::int64_t n_multi_token_prediction_layers);

// Converts the table of arguments that Megatron-LM prints at the start into a command line. `arguments`: all
// names and values as Python prints them ("num_layers", "32"), including defaults and computed ones. The
// result has the flags with the same meaning for parse_megatron_command_line(): understood ones, and
// unmodelled ones that are on. `is_bert`: pretrain_bert.py ran.
[[nodiscard]] std::string command_line_of_arguments(
    std::span<const std::pair<std::string, std::string>> arguments, bool is_bert);

}  // namespace stepcast
