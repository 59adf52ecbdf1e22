// What the time of CPU threads is spent on, by the five kinds of host time (Lin et al., TPDS 2024).
//
// Their unit is the top-level operator: the outermost one below the labels of modules and steps. A launch is
// a call that starts GPU work or waits for a stream; other runtime calls inside an operator separate nothing.
#pragma once

#include <vector>

#include "stepcast/operation/overhead_type.h"
#include "stepcast/trace/detail/cpu_lanes.h"
#include "stepcast/trace/detail/rank_graph.h"

namespace stepcast::detail {

struct HostTime {
  OverheadType type = OverheadType::t1;
  std::int32_t op = kNone;  // top-level operator (index into RecordedRank::cpu_ops); kNone for T1 and T4
};

// [lane][task of CpuLanes]
[[nodiscard]] std::vector<std::vector<HostTime>> host_times(const RankGraph& graph, const CpuLanes& lanes);

}  // namespace stepcast::detail
