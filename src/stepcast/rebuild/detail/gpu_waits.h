// Waits between GPU streams, rebuilt from the calls that a trace shows.
//
// cuda_sync records name event and stream; where they are absent the edge is concluded from the order of
// calls on the thread and marked as inferred. A concluded edge that the recorded times contradict (its source
// ended after its destination began) moves to the latest earlier work on the source stream that had ended, or
// is dropped.
#pragma once

#include "stepcast/rebuild/detail/rank_graph.h"

namespace stepcast::detail {

// Appends event and tensor edges to graph.gpu_edges.
void find_gpu_waits(RankGraph& graph);

// Last work on `stream` launched before `time_us`, kNone if there is none.
[[nodiscard]] std::int32_t last_launched_before(const RankGraph& graph, std::int32_t stream, double time_us);
// Work `i`, or the latest work before it on the stream that had ended at `ended_by_us`.
[[nodiscard]] std::int32_t last_ended(const RankGraph& graph, std::int32_t i, double ended_by_us);

// Kernels held by a kernel of another stream that occupied the device: an op that was ready but began later
// (see the source for the two forms). `ready_us` is when all other edges allow each work to start.
void find_busy_device(RankGraph& graph, const std::vector<double>& ready_us);

}  // namespace stepcast::detail
