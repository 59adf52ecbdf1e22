// Scores forecasts of published steps of post-training (rl_steps.csv).
//
//   leave_one_configuration_out   (primary) the six RlConstants fitted to the other configurations: model, GPUs, policy
//                                 and type; releases of one configuration stay together; s
//   leave_one_model_out           fitted to the other models
//   tokens_per_s_per_gpu          the trivial answer: the median rate of the same model's other configurations
//   off_over_on                   off- over on-policy time of a model on as many GPUs in one release, by the first test
//   constant_off_over_on          the trivial answer: always 0.70
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "stepcast/base/result.h"
#include "stepcast/rollout/rl_step.h"

#include "lab/suite.h"

namespace stepcast {

// Published steps of post-training (rl_steps.csv), and the questions that they answer.

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

// `data`: a folder with rl_steps.csv.
[[nodiscard]] Result<SuiteResult> validate_rl(const std::filesystem::path& data,
                                              const SuiteOptions& options = {});

struct RlMeasured {
  const RlRun* run = nullptr;
  RlAnswer answer;
};
// Those that make the steps likeliest: errors in ln of 15 %, a release of a configuration weighing as one of all of them,
// and what was assumed before (docs/constants.md).
[[nodiscard]] RlConstants fit_rl_constants(const std::vector<const RlMeasured*>& rows);

}  // namespace stepcast
