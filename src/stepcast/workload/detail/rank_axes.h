// The axes of a layout's ranks, from the fastest to the slowest: of the model without its experts, and of the experts.
#pragma once

#include <vector>

#include "stepcast/base/result.h"
#include "stepcast/workload/detail/rank_grid.h"
#include "stepcast/workload/layout.h"

namespace stepcast::detail {

// All five axes as the layout's rank order names them; those that it leaves out have one rank.
[[nodiscard]] Result<std::vector<Axis>> parse_rank_order(const Layout& layout);

// Context and data axes are cut in two where shard groups are smaller than both together.
[[nodiscard]] Result<std::vector<GridAxis>> dense_axes(const Layout& layout, const std::vector<Axis>& order);
[[nodiscard]] std::vector<GridAxis> expert_axes(const Layout& layout, const std::vector<Axis>& order);

[[nodiscard]] inline bool carries_data(const GridAxis& a) {
  return a.axis == Axis::data || a.axis == Axis::context;
}

}  // namespace stepcast::detail
