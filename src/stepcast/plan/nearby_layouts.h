// Finds better layouts with few changes from the layout of a running job.
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

// A run described by a file: a Megatron-LM launch script, a TorchTitan config (.toml) or a DeepSpeed config (.json).
struct RunningLayout {
  Job job;        // for the planner: the model, the batch and the other settings of the file
  Layout layout;  // the current layout
  Transformer model;
  std::optional<std::int64_t> n_gpus;
};
// Settings of `given` override the file. Errors: those of resolve().
[[nodiscard]] Result<RunningLayout> read_running_layout(const std::filesystem::path& file, const Job& given);

// The search point of a layout. Groups of hybrid sharding are rounded to whole nodes.
[[nodiscard]] LayoutPoint point_of(const Layout& layout, std::int64_t gpus_per_node);

// The fastest of `priced` (ascending in time) with at most 1, 2, 3 changes from `from` (n_changes()), as far as each is faster
// than those with fewer changes, and the fastest of all.
struct NearbyLayout {
  int changes = 0;
  PricedLayout layout;
};
[[nodiscard]] std::vector<NearbyLayout> nearby_layouts(const std::vector<PricedLayout>& priced,
                                                       const LayoutPoint& from);

// The current layout and its faster neighbours.
struct LayoutNow {
  LayoutPoint point;
  double step_us = 0;
  std::string why_not;  // why it cannot run on this machine, so that it has no time; empty: it runs
  std::vector<NearbyLayout> nearby;  // faster layouts
};
// Priced with the assumptions of the plan.
[[nodiscard]] LayoutNow layout_now(const RunningLayout& running, const LayoutPlan& plan,
                                   const Platform& platform);

}  // namespace stepcast
