// Builds a Program from execution traces without times: they only list which operators ran in which order on
// which tensors. Host overheads and kernel models then price the Program.
//
//   const std::vector<UntimedRank> ranks{{&et_of_rank0, 0, start_us}, ...};
//   STEPCAST_ASSIGN(RecordedProgram untimed, untimed_program(ranks, overheads.launches_table));
//
// The model of a rank is Algorithm 1 of Lin et al. (TPDS 2024): one CPU timeline with the top-level operators
// in order, one stream for computation and one for communication. An operator takes T1 before it, T2 until
// its first launch, T4 for each launch, T5 between two launches, and T3 after the last one. It makes the
// launches that were observed for operators of its name, otherwise one for each kernel that its Operations
// need. Extensions to the published rules: an operator that reads the output of a collective, also through a
// view of the same storage, waits for the collective; a synchronising call waits for the GPU; a collective
// waits for the computation before it.
//
// Every task has duration 0 until it is priced. `facts` contain no measured step, and `measured` contains no
// times.
#pragma once

#include <cstdint>
#include <span>

#include "stepcast/base/result.h"
#include "stepcast/cost/host_overheads.h"
#include "stepcast/rebuild/recorded_program.h"
#include "stepcast/trace/execution_trace.h"

namespace stepcast {

// One rank with its execution trace.
struct UntimedRank {
  const ExecutionTrace* trace = nullptr;
  std::int32_t rank = 0;
  double start_us = 0;          // begin of its step, on a common clock of all ranks
  double recorded_step_us = 0;  // for comparison, if a profiler trace has it
};

// Collectives of different ranks are matched by operation and order. If ranks disagree on their number or
// order, each rank keeps its own. Errors: no ranks, a repeated rank, a trace without operators.
[[nodiscard]] Result<RecordedProgram> untimed_program(std::span<const UntimedRank> ranks,
                                                      const LaunchTable& launches);

}  // namespace stepcast
