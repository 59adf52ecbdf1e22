// Which of the five overheads (trace/recorded_program.h) the tasks of CPU threads belong to.
#pragma once

#include <cstdint>
#include <vector>

#include "stepcast/operation/overhead_type.h"
#include "stepcast/rebuild/detail/cpu_lanes.h"
#include "stepcast/rebuild/detail/rank_graph.h"

namespace stepcast::detail {

struct HostTime {
  OverheadType type = OverheadType::t1;
  // Top-level operator (index into RecordedRank::cpu_ops); T1: the one behind the gap. kNone for T4, and where
  // the step ends.
  std::int32_t op = kNone;
  // How many occurrences of the overhead the task stands for: its share of its piece, times all pieces of this
  // overhead in the step over those that have a length. Summed over the tasks of an overhead these are its
  // occurrences, so that their mean time keeps the sum.
  double times = 1;
  bool in_data_loader = false;
  std::int32_t after = kNone;  // T1: the operator before the gap; kNone where the thread begins
};

// A HostPiece that is no T4, with the operator as in HostTime.
struct CutPiece {
  OverheadType type = OverheadType::t1;
  std::int32_t op = kNone;
  double duration_us = 0;
  std::uint32_t profiler_events = 0;
  bool in_data_loader = false;  // its operator is
  std::int32_t after = kNone;
};

struct LaunchingOperator {
  std::int32_t op = kNone;
  std::vector<std::int32_t> launches;  // indices into RankGraph::calls, in order
};

struct HostTimes {
  std::vector<std::vector<HostTime>> of_task;  // [lane][task of CpuLanes]
  std::vector<CutPiece> pieces;
  std::vector<LaunchingOperator> operators;  // top-level ones, also those that launch nothing
};

[[nodiscard]] HostTimes host_times(const RankGraph& graph, const CpuLanes& lanes);

}  // namespace stepcast::detail
