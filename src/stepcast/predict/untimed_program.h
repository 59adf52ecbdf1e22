// Ranks that are known by their execution traces alone: which operators ran in which order on which tensors, and
// no times. The Program that follows from them, for host overheads and kernel models to price.
//
//   const std::vector<UntimedRank> ranks{{&et_of_rank0, 0, start_us}, ...};
//   STEPCAST_ASSIGN(RecordedProgram untimed, untimed_program(ranks, overheads.launches_table));
//
// As Algorithm 1 of Lin et al. (TPDS 2024) sees a rank: one CPU time line of its top-level operators in order, a
// stream for computation and one for communication. An operator takes T1 before it, T2 to its first launch, T4 for
// each launch, T5 between two, T3 behind the last. It makes the launches that operators of its name were seen to
// make, otherwise one for each kernel that its Operations need. Beyond the published rules: who reads what a
// collective wrote, also through a view of the same storage, waits for it; a synchronising call waits for the GPU; a
// collective waits for the computation before it.
//
// Every task lasts 0 until it is priced. `facts` have no measured step, `measured` no times.
#pragma once

#include <cstdint>
#include <span>

#include "stepcast/base/result.h"
#include "stepcast/cost/host_overheads.h"
#include "stepcast/rebuild/recorded_program.h"
#include "stepcast/trace/execution_trace.h"

namespace stepcast {

struct UntimedRank {
  const ExecutionTrace* trace = nullptr;
  std::int32_t rank = 0;
  double start_us = 0;          // when its step begins, on a clock of all ranks
  double recorded_step_us = 0;  // for comparison, where a profiler trace has it
};

// Collectives are joined by their operation and order; where ranks do not agree on how many there were, each keeps
// its own. Errors: no ranks, one rank twice, a trace without operators.
[[nodiscard]] Result<RecordedProgram> untimed_program(std::span<const UntimedRank> ranks,
                                                      const LaunchTable& launches);

}  // namespace stepcast
