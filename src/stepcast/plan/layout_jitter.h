// How a layout stands GPUs that are slower than others: every step draws how fast each GPU is, and ranks wait for each other
// where the layout makes them.
//
//   STEPCAST_ASSIGN(const auto shaken, jitter_layouts(ranking, prototypes, steps, {.gpu = 0.05}));
//   shaken[0].p90_ms      // of ranking.layouts[0]
//
// Ranks that exchange something in every layer (tensor, context and expert parallel; all ranks of a stage with FSDP, which
// gathers every layer's weights) are as slow as the slowest of them. Stages of a pipeline keep their own pace and wait for
// their neighbours, micro-batch by micro-batch (step_schedule.h); data-parallel replicas wait for each other at the end. So
// many small groups in a deep pipeline lose more than few large ones, and FSDP, where all wait for one, most.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "stepcast/base/fields.h"
#include "stepcast/base/result.h"
#include "stepcast/plan/layout_ranking.h"
#include "stepcast/predict/scenario_sweep.h"

namespace stepcast {

struct JitteredLayout {
  STEPCAST_FIELDS(JitteredLayout);
  STEPCAST_FIELD(std::size_t, of, "index into layouts");
  STEPCAST_COLUMN(double, mean_ms, "", "mean\nms", 1);
  STEPCAST_COLUMN(double, p50_ms, "", "p50\nms", 1);
  STEPCAST_COLUMN(double, p90_ms, "", "p90\nms", 1);
  STEPCAST_FIELD(double, slowdown, "mean step time over the step time without jitter", 1);
  STEPCAST_COMPUTED_COLUMN(100 * (x.slowdown - 1), "slower\n%", 1)
};

struct JitterOptions {
  std::size_t scenarios = 200;
  std::uint64_t seed = 1;
};

// Layouts that are shaken.
inline constexpr std::size_t kMostJittered = 50;

// Of the first kMostJittered layouts of the ranking, in its order. The draws replace StepAssumptions::gpu_speed_spread;
// `jitter.gpu` and `.network` are standard deviations of the logarithm of a factor per GPU and one per step; `.host` plays
// no part, as described steps hardly wait for hosts. The same for one seed wherever it runs.
[[nodiscard]] Result<std::vector<JitteredLayout>> jitter_layouts(const LayoutRanking& ranking,
                                                                 const LayoutPrototypes& prototypes,
                                                                 const StepModel& steps, const Jitter& jitter,
                                                                 const JitterOptions& options = {});

// Of the layouts that cannot be told from the fastest and whose memory is not tight: the one with the least p90 under
// jitter. The fastest if there is none.
[[nodiscard]] std::size_t steadiest(const LayoutRanking& ranking,
                                    const std::vector<JitteredLayout>& jittered);

}  // namespace stepcast
