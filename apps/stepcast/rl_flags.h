// What `predict` and `plan` ask of a step of post-training with the same flags.
#pragma once

#include <string>

#include "stepcast/rollout/rl_forecast.h"

#include "option_list.h"

namespace stepcast::cli {

void add_rl_flags(FlagList& flags, RlSettings& to, QuestionSet of = kEveryQuestion);

// Whether a config, or a launch script or command line, is one of a framework of post-training. Files alone are looked
// into: a pipe can be read once.
[[nodiscard]] bool names_rl_config(const std::string& config, const std::string& command_line);

}  // namespace stepcast::cli
