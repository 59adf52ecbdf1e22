// Robustness of layouts against GPU speed jitter: every step draws a speed for each GPU, and ranks wait for each other as the
// layout requires.
//
//   STEPCAST_ASSIGN(const auto shaken, jitter_layouts(ranking, prototypes, steps, {.gpu = 0.05}));
//   shaken[0].p90_ms      // of ranking.layouts[0]
//
// Ranks that communicate in every layer (tensor, context and expert parallel; with FSDP all ranks of a stage, because it
// gathers the weights of every layer) run at the speed of the slowest. Pipeline stages keep their own speed and wait for
// their neighbours at each micro-batch (step_schedule.h). Data-parallel replicas wait for each other at the end. Therefore
// many small groups in a deep pipeline lose more than few large ones, and FSDP with its single large group loses most.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "stepcast/base/fields.h"
#include "stepcast/base/result.h"
#include "stepcast/plan/layout_ranking.h"
#include "stepcast/predict/scenario_sweep.h"

namespace stepcast {

// Step times of one layout under jitter.
struct JitteredLayout {
  STEPCAST_FIELDS(JitteredLayout);
  STEPCAST_FIELD(std::size_t, of, "index into layouts");
  STEPCAST_COLUMN(double, mean_ms, "", "mean\nms", 1);
  STEPCAST_COLUMN(double, p50_ms, "", "p50\nms", 1);
  STEPCAST_COLUMN(double, p90_ms, "", "p90\nms", 1);
  STEPCAST_FIELD(double, slowdown, "mean step time over the step time without jitter", 1);
  STEPCAST_COMPUTED_COLUMN(100 * (x.slowdown - 1), "slower\n%", 1)
};

// Parameters of the simulation.
struct JitterOptions {
  std::size_t scenarios = 200;  // simulated steps per layout
  std::uint64_t seed = 1;
};

// Most layouts that are simulated.
inline constexpr std::size_t kMostJittered = 50;

// Simulates the first kMostJittered layouts of the ranking, in its order. `jitter.gpu` and `.network` are standard deviations
// of the logarithm of a factor per GPU and per step; they replace StepAssumptions::gpu_speed_spread. `.host` is ignored,
// because described steps hardly wait for hosts. The result depends only on the seed, not on the machine.
[[nodiscard]] Result<std::vector<JitteredLayout>> jitter_layouts(const LayoutRanking& ranking,
                                                                 const LayoutPrototypes& prototypes,
                                                                 const StepModel& steps, const Jitter& jitter,
                                                                 const JitterOptions& options = {});

// Among layouts that tie with the fastest and have enough headroom, the index of the one with the least p90 under jitter; the
// fastest if there is none.
[[nodiscard]] std::size_t steadiest(const LayoutRanking& ranking,
                                    const std::vector<JitteredLayout>& jittered);

}  // namespace stepcast
