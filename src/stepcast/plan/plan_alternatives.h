// The best plan on at most a number of GPUs, and batches that divide better among all of them.
//
//   STEPCAST_ASSIGN(const PlanAtMost best, plan_at_most(request, platform));
//   best.plan.space.n_gpus     // 256 of at most 384
//
// More GPUs are not always faster. Data-parallel ranks divide the batch, tensor-parallel ranks divide a node, and context-parallel
// degrees are powers of two. The GPUs may have a factor that fits none of these. Only pipeline stages can use this factor.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "stepcast/base/result.h"
#include "stepcast/plan/layout_plan.h"
#include "stepcast/platform/platform.h"

namespace stepcast {

// The chosen layout for another number of GPUs or another batch.
struct PlanAlternative {
  std::int64_t n_gpus = 0, global_batch = 0;  // GPUs, sequences
  double step_us = 0;                         // expected step
  std::string layout, flags;                  // flags of Megatron-LM; empty: it has none for this layout
  std::string command{};                      // prints this plan; empty: unknown
};

// The plan with the shortest expected step, and plans to compare it with.
struct PlanAtMost {
  LayoutPlan plan;
  // The plan on all GPUs if a smaller number is faster, then those with dividing_batches() on all GPUs.
  std::vector<PlanAlternative> alternatives;
};

// The factor of `n_gpus` that only pipeline stages can use: 3 for 384 GPUs in nodes of 8 and 1024 sequences. 1: none.
[[nodiscard]] std::int64_t factor_for_stages(std::int64_t n_gpus, std::int64_t global_batch,
                                             std::int64_t gpus_per_node);
// The nearest batches below and above of which the data-parallel degrees for `global_batch`, times this factor, are divisors:
// 768 and 1152. Empty without such a factor.
[[nodiscard]] std::vector<std::int64_t> dividing_batches(std::int64_t n_gpus, std::int64_t global_batch,
                                                         std::int64_t gpus_per_node);
// A note about this factor with the options that help. Empty if there is none, or if a given list of degrees uses it.
[[nodiscard]] std::optional<std::string> note_of_batch(const LayoutSpace& space, std::int64_t global_batch,
                                                       std::int64_t gpus_per_node);

// Whole nodes with fewer than `n_gpus` GPUs, then parts of one node; descending.
[[nodiscard]] std::vector<std::int64_t> smaller_gpu_counts(std::int64_t n_gpus, std::int64_t gpus_per_node);

// Plans request.n_gpus and smaller_gpu_counts(), with the batch that plan_layouts() uses on request.n_gpus. Of equal steps, the
// one on fewer GPUs. A plan without layouts if none runs and fits on any number. Errors: those of plan_layouts() on all
// GPUs, if no smaller number has a plan; a stop request.
[[nodiscard]] Result<PlanAtMost> plan_at_most(const PlanRequest& request, const Platform& platform);

}  // namespace stepcast
