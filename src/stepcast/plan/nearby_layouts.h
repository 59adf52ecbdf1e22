// Better layouts near the one that runs now: people do not start from scratch.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "stepcast/base/result.h"
#include "stepcast/describe/job.h"
#include "stepcast/plan/layout_plan.h"
#include "stepcast/plan/layout_point.h"
#include "stepcast/plan/layout_search.h"

namespace stepcast {

// A run that is described by a file: a launch script of Megatron-LM, a TorchTitan config (.toml) or a DeepSpeed config
// (.json).
struct RunningLayout {
  Job job;        // to plan with: the model, the batch, and what else the file says
  Layout layout;  // as it runs now
  Transformer model;
  std::optional<std::int64_t> n_gpus;
};
// `given` holds against the file. Errors: those of resolve().
[[nodiscard]] Result<RunningLayout> read_running_layout(const std::filesystem::path& file, const Job& given);

// The point of a layout; nodes of hybrid sharding rounded to whole ones.
[[nodiscard]] LayoutPoint point_of(const Layout& layout, std::int64_t gpus_per_node);

// The fastest of `priced` (ascending) that differ from `from` in at most 1, 2, 3 choices (n_changes), where each is
// faster than those with fewer; and the fastest of all.
struct NearbyLayout {
  int changes = 0;
  PricedLayout layout;
};
[[nodiscard]] std::vector<NearbyLayout> nearby_layouts(const std::vector<PricedLayout>& priced,
                                                       const LayoutPoint& from);

// What runs now beside what was found.
struct LayoutNow {
  LayoutPoint point;
  double step_us = 0;
  std::string why_not;               // not empty: it has no time, as it cannot run on this machine
  std::vector<NearbyLayout> nearby;  // those that are faster
};
// Priced as the plan was.
[[nodiscard]] LayoutNow layout_now(const RunningLayout& running, const LayoutPlan& plan,
                                   const Platform& platform);

}  // namespace stepcast
