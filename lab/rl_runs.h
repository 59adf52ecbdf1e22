// Published steps of post-training (rl_steps.csv), and the questions that they answer.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "stepcast/base/result.h"
#include "stepcast/rollout/rl_step.h"

namespace stepcast {

struct RlRun {
  std::string name;           // "GRPO LLAMA3.1_8B 16 off:1 fp8, Nemo RL v0.5"
  std::string model;          // as published
  std::string configuration;  // equal for one job in several releases
  std::string pair;           // equal for on- and off-policy at as many GPUs in one release
  bool on_policy = true;
  RlQuestion question;
  double step_s = 0;
  double tokens_per_gpu = 0;  // generated
};

struct RlRuns {
  std::vector<RlRun> runs;
  std::vector<std::string> skipped;  // with the reason
};

// Errors name line and column.
[[nodiscard]] Result<RlRuns> parse_rl_runs(std::string_view text, const std::string& name);
[[nodiscard]] bool looks_like_rl_runs(std::string_view text);

}  // namespace stepcast
