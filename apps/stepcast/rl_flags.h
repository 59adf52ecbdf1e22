// What `predict` and `plan` say alike of a step of post-training.
#pragma once

#include <string>

namespace stepcast::cli {

inline constexpr char kRlHeading[] = "Post-training by reinforcement learning (--rl)";

// Whether a config, or a launch script or command line, is one of a framework of post-training. Files alone are looked
// into: a pipe can be read once.
[[nodiscard]] bool names_rl_config(const std::string& config, const std::string& command_line);

}  // namespace stepcast::cli
