// Calls of the host that are slow once: they hold a step up, and no what-if moves them.
#pragma once

#include <string>

#include "stepcast/rebuild/detail/cpu_lanes.h"
#include "stepcast/rebuild/detail/rank_graph.h"

namespace stepcast::detail {

// One line that names those of the step, the longest first, and why each is slow as far as the trace tells; empty where they
// take less than a hundredth of the step. Calls that wait for GPU work are none of them.
[[nodiscard]] std::string slow_calls_note(const RankGraph& graph, const CpuLanes& lanes);

}  // namespace stepcast::detail
