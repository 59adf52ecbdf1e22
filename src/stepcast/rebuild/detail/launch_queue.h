// The queue of launches that the driver keeps for a stream. Its depth is finite: the launch that enqueues work n cannot
// return before work n - depth is over.
//
// Where launches of the step were held, the depth is theirs; elsewhere it is that of the driver, which holds nothing in
// the recorded step but may when kernels take longer.
#pragma once

#include "stepcast/rebuild/detail/cpu_lanes.h"

namespace stepcast::detail {

// Appends to lanes.waits, as WaitKind::held, every launch that has to wait for room, or would if the GPU were slower.
void find_full_queues(const RankGraph& graph, CpuLanes& lanes);

// Calls that the GPU holds back although their names do not say so: memory calls that wait for the device, and
// launches on a full queue.

// Appends them to lanes.waits, as WaitKind::held.
void find_held_calls(const RankGraph& graph, CpuLanes& lanes);

}  // namespace stepcast::detail
