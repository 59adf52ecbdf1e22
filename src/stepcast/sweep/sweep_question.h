// Turns one point of a sweep into the question it asks: the job, the platform and the options of both modes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "stepcast/analyze/forecast.h"
#include "stepcast/base/result.h"
#include "stepcast/describe/job.h"
#include "stepcast/plan/layout_plan.h"
#include "stepcast/rollout/rl_forecast.h"
#include "stepcast/sweep/sweep_spec.h"

namespace stepcast {

// The question of one point. Members keep their defaults where the point has no such key.
struct SweepQuestion {
  // The job, with the number of GPUs left open if it depends on the platform (`nodes`).
  Job job;
  std::string platform = "dgx-h100";
  // The number of GPUs, or the number of nodes instead. `gpus_per_node` overrides the platform.
  std::optional<std::int64_t> n_gpus, nodes, gpus_per_node;
  // Texts of `--what-if` and `--measured`, not parsed yet.
  std::vector<std::string> what_if, measured;
  std::string open_layout;  // the value of `--layout`; empty: not given
  std::string pools;        // pools of different GPUs; empty: n_gpus GPUs of `platform`
  std::vector<std::string> zones;
  TrainingBudget budget;
  PlanRequest plan;  // for mode plan: the complete request
  RlSettings rl;     // for steps of post-training
  // For recommendation models: names of files, and samples per rank.
  std::string tables, indices, sharding_plan, links_of;
  std::optional<std::int64_t> batch_per_rank;
};

// Errors name the key: a value of the wrong type or out of range, flags that Megatron-LM does not allow
// together, files that cannot be read.
[[nodiscard]] Result<SweepQuestion> question_of(const SweepPoint& point);

}  // namespace stepcast
