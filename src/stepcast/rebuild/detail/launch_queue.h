// The queue of launches that the driver keeps for a stream. It has a finite depth: the launch of work n
// cannot return before work n - depth is complete.
//
// If launches of the step waited, the depth is learned from them. Otherwise it is the driver's depth, which
// delays nothing in the recorded step but may do so if kernels take longer.
#pragma once

#include "stepcast/rebuild/detail/cpu_lanes.h"

namespace stepcast::detail {

// Appends to lanes.waits, as WaitKind::held, each launch that has to wait for room in the queue, or would
// have to if the GPU were slower.
void find_full_queues(const RankGraph& graph, CpuLanes& lanes);

// Finds all calls that the GPU delays although their names do not say so: memory calls that wait for the
// device, and launches on a full queue. Appends them to lanes.waits as WaitKind::held.
void find_held_calls(const RankGraph& graph, CpuLanes& lanes);

}  // namespace stepcast::detail
