// Waits between GPU streams, reconstructed from the calls in a trace.
//
// If the trace has cuda_sync records, they name event and stream. Otherwise the edge is concluded from the
// order of calls on the thread and marked as inferred. If the recorded times contradict a concluded edge (its
// source ended after its destination started), the source is moved to the latest earlier work on its stream
// that had ended, or the edge is dropped.
#pragma once

#include "stepcast/rebuild/detail/rank_graph.h"

namespace stepcast::detail {

// Appends event and tensor edges to graph.gpu_edges.
void find_gpu_waits(RankGraph& graph);

// The last work on `stream` launched before `time_us`; kNone if there is none.
[[nodiscard]] std::int32_t last_launched_before(const RankGraph& graph, std::int32_t stream, double time_us);
// Work `i`, or the latest work before it on its stream that had ended by `ended_by_us`; kNone if there is
// none.
[[nodiscard]] std::int32_t last_ended(const RankGraph& graph, std::int32_t i, double ended_by_us);

// Finds kernels that were ready but waited for a kernel of another stream that occupied the device (the
// source describes two forms), and appends edges. `ready_us`: earliest start of each work by all other edges.
void find_busy_device(RankGraph& graph, const std::vector<double>& ready_us);

}  // namespace stepcast::detail
