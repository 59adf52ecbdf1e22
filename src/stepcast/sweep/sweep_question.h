// A point of a sweep as what is asked: the job, the machine, and what of both modes goes with them.
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

struct SweepQuestion {
  Job job;  // without numbers of GPUs where the platform has to say how many `nodes` have
  std::string platform = "dgx-h100";
  std::optional<std::int64_t> n_gpus, nodes, gpus_per_node;
  std::vector<std::string> what_if, measured;
  std::string open_layout;  // a word of `--layout`; empty: not said
  std::string pools;        // of different GPUs; empty: n_gpus of `platform`
  std::vector<std::string> zones;
  TrainingBudget budget;
  PlanRequest plan;  // of mode plan: complete
  RlSettings rl;     // of post-training
  // Of recommendation models.
  std::string tables, indices, sharding_plan, links_of;
  std::optional<std::int64_t> batch_per_rank;
};

// Errors: a value that its key does not take, by the name of the key; flags that Megatron-LM's words do not allow; files
// that cannot be read.
[[nodiscard]] Result<SweepQuestion> question_of(const SweepPoint& point);

}  // namespace stepcast
