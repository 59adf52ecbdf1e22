// The table of arguments that Megatron-LM prints when it starts -> a command line.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

namespace stepcast {

// `arguments` are names and values as Python prints them ("num_layers", "32"), all of them, defaults and what Megatron
// computed included. The command line has the flags that say the same to parse_megatron_command_line(): those that it
// understands, and switched-on ones that it lists as not modelled. `is_bert`: pretrain_bert.py ran.
[[nodiscard]] std::string command_line_of_arguments(
    std::span<const std::pair<std::string, std::string>> arguments, bool is_bert);

}  // namespace stepcast
