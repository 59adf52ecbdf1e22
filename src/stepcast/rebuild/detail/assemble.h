// Assembles a Program from linked ranks, CPU lanes, learned constants and matched collectives.
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

// How the GPU work of one rank starts.
struct RankStarts {
  std::vector<GpuStart> of_work;  // [GpuWork]
  GpuLateness lateness;
};

// Adds the program, measured times, facts and constants to `out`. The string table of `out.program` must
// already contain the names of runtime calls. The data of a rank is freed as soon as its block is built.
// Error: the edges of a rank form a cycle.
[[nodiscard]] Status assemble(std::vector<RankGraph> ranks, std::vector<CpuLanes> lanes,
                              std::vector<RankStarts> starts, const Constants& constants,
                              const CollectiveMatch& match, const RebuildOptions& options,
                              RecordedProgram& out);

}  // namespace stepcast::detail
