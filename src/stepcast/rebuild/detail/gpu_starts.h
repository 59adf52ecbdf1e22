// What holds back the start of GPU work: its launch, the work before it on its stream, and, for the nodes of one
// graph launch, the nodes before it.
//
// Work that begins before its predecessor on the stream has ended (programmatic dependent launch, parallel
// branches of a graph) is held by the start of the predecessor. What one call launched keeps its recorded
// distances: their causes stand in the graph and not in the trace.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "stepcast/rebuild/detail/constants.h"
#include "stepcast/rebuild/detail/rank_graph.h"

namespace stepcast::detail {

struct LaunchEdge {
  bool from_start = false;  // of the call; else from its end
  bool kept = false;
  double delay_us = 0;
  DelayClass delay;
};

// From other GPU work of the same stream or of the same launch.
struct OrderEdge {
  std::int32_t from = kNone;
  bool from_start = false;  // else from its end
  double delay_us = 0;
  EdgeInfo info;  // without EdgeInfo::delay
  std::optional<DelayClass> delay;
};

struct GpuStart {
  std::optional<LaunchEdge> launch;  // none: launched before the window, or a later node of its launch
  std::optional<OrderEdge> order;
  // Since the window's begin: work that entered before it, that waited for work which is not in the file, or the first of
  // a stream whose launch is lost.
  std::optional<double> offset_us;
};

// [work]
[[nodiscard]] std::vector<GpuStart> gpu_starts(const RankGraph& graph, const Constants& constants,
                                               bool own_delays);

// When each GPU work could start by all that holds it back, GpuEdges included, from recorded times.
[[nodiscard]] std::vector<double> ready_times(const RankGraph& graph, const Constants& constants,
                                              const std::vector<GpuStart>& starts);

// Keeps the recorded start of the first work of a stream where it began late although nothing that the file shows
// had run on the device: it waited for what was launched before the file.
void keep_starts_behind_unseen_work(const RankGraph& graph, const std::vector<double>& ready_us,
                                    std::vector<GpuStart>& starts);

// GPU work that began more than kLateUs after all that is known to hold it back.
struct GpuLateness {
  std::uint32_t n = 0;
  double late_us = 0;  // time in which at least one work of the rank was late
  // Time in which a device did nothing at all although work was queued behind work that had ended.
  double idle_between_queued_us = 0;
  std::uint32_t idle_n = 0;
};
[[nodiscard]] GpuLateness gpu_lateness(const RankGraph& graph, const std::vector<double>& ready_us,
                                       const std::vector<GpuStart>& starts);

}  // namespace stepcast::detail
