// Reports runtime calls that are slow once. They delay a step, and no what-if changes them.
#pragma once

#include <string>

#include "stepcast/rebuild/detail/cpu_lanes.h"
#include "stepcast/rebuild/detail/rank_graph.h"

namespace stepcast::detail {

// One line with the slow calls of the step, the longest first, and the cause if the trace shows it. Empty if
// they take less than 1 % of the step. Calls that wait for GPU work do not count.
[[nodiscard]] std::string slow_calls_note(const RankGraph& graph, const CpuLanes& lanes);

}  // namespace stepcast::detail
