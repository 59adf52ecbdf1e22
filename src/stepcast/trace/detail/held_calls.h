// Calls that the GPU holds back although their names do not say so: memory calls that wait for the device, and
// launches on a full queue.
#pragma once

#include "stepcast/trace/detail/cpu_lanes.h"

namespace stepcast::detail {

// Appends them to lanes.waits, as WaitKind::held.
void find_held_calls(const RankGraph& graph, CpuLanes& lanes);

}  // namespace stepcast::detail
