// The exact join of an execution trace and the profiler trace of the same iteration: both hold the operators
// of a thread in the order in which they began, so the sequences of names agree one by one.
#pragma once

#include <cstdint>
#include <vector>

#include "stepcast/base/result.h"
#include "stepcast/trace/execution_trace.h"
#include "stepcast/trace/recorded_rank.h"

namespace stepcast::detail {

struct EtJoin {
  std::vector<std::int32_t> node_of_op;  // [RecordedRank::cpu_ops] -> ExecutionTrace::nodes, -1: none
  std::uint64_t joined = 0;
  std::uint64_t nodes = 0;  // nodes that a profiler trace can hold (without process and thread nodes)
};

// The ET of one iteration may lie anywhere inside a profiler trace of many: each ET thread is searched in
// each recorded thread as a contiguous run of names. Where a thread has no exact run the nodes are joined by
// a constant offset between the two numberings, as far as names agree. Fewer than half of the nodes joined is
// an Error: the files do not belong together.
[[nodiscard]] Result<EtJoin> join_execution_trace(const RecordedRank& recorded, const ExecutionTrace& et);

}  // namespace stepcast::detail
