// Assigns the tasks of CPU threads to the five overheads (OverheadType; HostPiece in
// rebuild/recorded_program.h).
#pragma once

#include <cstdint>
#include <vector>

#include "stepcast/operation/overhead_type.h"
#include "stepcast/rebuild/detail/cpu_lanes.h"
#include "stepcast/rebuild/detail/rank_graph.h"

namespace stepcast::detail {

// The overhead of one task.
struct HostTime {
  OverheadType type = OverheadType::t1;
  // Top-level operator (index into RecordedRank::cpu_ops); for T1 the one after the gap. kNone for T4, and
  // for the gap before the end of the step.
  std::int32_t op = kNone;
  // Number of occurrences of the overhead that the task represents: its share of its piece, times the ratio
  // of all pieces of this overhead to those with a length. The sum over all tasks is the number of
  // occurrences, so that the mean time of an occurrence preserves the total time.
  double times = 1;
  bool in_data_loader = false;
  std::int32_t after = kNone;  // T1: operator before the gap; kNone at the start of the thread
};

// A piece of host time of type T1, T2, T3 or T5. The operator is defined as in HostTime.
struct CutPiece {
  OverheadType type = OverheadType::t1;
  std::int32_t op = kNone;
  // Time in microseconds without waiting, and number of events that the profiler wrote in it.
  double duration_us = 0;
  std::uint32_t profiler_events = 0;
  bool in_data_loader = false;  // the operator is in a data loader
  std::int32_t after = kNone;
};

// A top-level operator and its launches.
struct LaunchingOperator {
  std::int32_t op = kNone;
  std::vector<std::int32_t> launches;  // indices into RankGraph::calls, in order
};

// The host time of one rank.
struct HostTimes {
  std::vector<std::vector<HostTime>> of_task;  // [lane][task of CpuLanes]
  std::vector<CutPiece> pieces;
  std::vector<LaunchingOperator> operators;  // all top-level operators, including those without launches
};

// Computes the host time of a rank from its lanes.
[[nodiscard]] HostTimes host_times(const RankGraph& graph, const CpuLanes& lanes);

}  // namespace stepcast::detail
