// From linked ranks, CPU lanes, constants and matched collectives to blocks and a Program.
#pragma once

#include <vector>

#include "stepcast/base/result.h"
#include "stepcast/rebuild/detail/collective_matching.h"
#include "stepcast/rebuild/detail/constants.h"
#include "stepcast/rebuild/detail/cpu_lanes.h"
#include "stepcast/rebuild/detail/gpu_starts.h"
#include "stepcast/rebuild/detail/rank_graph.h"
#include "stepcast/rebuild/recorded_program.h"

namespace stepcast::detail {

struct RankStarts {
  std::vector<GpuStart> of_work;  // [GpuWork]
  GpuLateness lateness;
};

// Adds program, measured times, facts and constants to `out`, whose program holds the names of calls. What is known of a
// rank goes as soon as its block stands.
[[nodiscard]] Status assemble(std::vector<RankGraph> ranks, std::vector<CpuLanes> lanes,
                              std::vector<RankStarts> starts, const Constants& constants,
                              const CollectiveMatch& match, const RebuildOptions& options,
                              RecordedProgram& out);

}  // namespace stepcast::detail
