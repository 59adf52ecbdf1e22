// What determines the start of GPU work: its launch, its predecessor on the stream and, for the nodes of one
// CUDA graph launch, earlier nodes.
//
// Work that starts before its predecessor on the stream has ended (programmatic dependent launch, parallel
// branches of a graph) depends on the start of the predecessor. Work of one launch keeps its recorded
// distances, since their causes are in the CUDA graph and not in the trace.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "stepcast/rebuild/detail/constants.h"
#include "stepcast/rebuild/detail/rank_graph.h"

namespace stepcast::detail {

// From a launching call to its work.
struct LaunchEdge {
  bool from_start = false;  // from the start of the call; else from its end
  // The delay is a recorded one that the replay keeps.
  bool kept = false;
  double delay_us = 0;
  DelayClass delay;
};

// From other GPU work on the same stream or of the same launch.
struct OrderEdge {
  std::int32_t from = kNone;
  bool from_start = false;  // from the start of the work; else from its end
  double delay_us = 0;
  EdgeInfo info;  // without EdgeInfo::delay
  std::optional<DelayClass> delay;
};

// Everything that determines the start of one piece of GPU work.
struct GpuStart {
  std::optional<LaunchEdge> launch;  // none: launched before the window, or a later node of its launch
  std::optional<OrderEdge> order;
  // Microseconds since the start of the window. Set for work from before the window, for work that waited for
  // work outside of the file, and for the first work of a stream with lost launches.
  std::optional<double> offset_us;
};

// [work] The edges that determine the start of each piece of GPU work.
[[nodiscard]] std::vector<GpuStart> gpu_starts(const RankGraph& graph, const Constants& constants,
                                               bool own_delays);

// [work] The earliest start in microseconds by all edges, including GpuEdges, using recorded times.
[[nodiscard]] std::vector<double> ready_times(const RankGraph& graph, const Constants& constants,
                                              const std::vector<GpuStart>& starts);

// Keeps the recorded start of the first work of a stream if it started late although nothing in the file had
// run on the device before: it waited for work from before the file.
void keep_starts_behind_unseen_work(const RankGraph& graph, const std::vector<double>& ready_us,
                                    std::vector<GpuStart>& starts);

// GPU work that started more than kLateUs after everything that is known to delay it.
struct GpuLateness {
  std::uint32_t n = 0;
  double late_us = 0;  // microseconds in which at least one piece of work was late
  // Microseconds in which a device was idle although work was queued and its predecessor had ended.
  double idle_between_queued_us = 0;
  std::uint32_t idle_n = 0;
};
// Measures the lateness of a rank. `ready_us` is the result of ready_times().
[[nodiscard]] GpuLateness gpu_lateness(const RankGraph& graph, const std::vector<double>& ready_us,
                                       const std::vector<GpuStart>& starts);

}  // namespace stepcast::detail
