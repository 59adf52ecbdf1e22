// The join of an execution trace and a profiler trace of the same run: both hold the operators of a thread in the
// order in which they began, so the sequences of names agree one by one.
#pragma once

#include <cstdint>
#include <vector>

#include "stepcast/base/result.h"
#include "stepcast/trace/execution_trace.h"
#include "stepcast/trace/recorded_rank.h"

namespace stepcast::detail {

struct EtJoin {
  std::vector<std::int32_t> node_of_op;  // [RecordedRank::cpu_ops] -> ExecutionTrace::nodes, -1: none
  // [RecordedRank::cpu_ops] Which of the identical iterations the op is in, from 0; -1: not joined.
  std::vector<std::int32_t> repetition_of_op;
  std::uint64_t joined = 0;  // nodes that some op stands for
  std::uint64_t nodes = 0;   // nodes whose names both files know
  // Nodes that the profiler trace knows no event of: process and threads, set-up of process groups, annotations.
  std::uint64_t only_in_execution_trace = 0;
};

// The ET of one iteration may lie anywhere inside a profiler trace of many: each ET thread is searched in each
// recorded thread as a contiguous run of names, and all runs are joined, one per identical iteration. Names
// that only one of the files knows do not count, nor, where that is not enough, do annotations: profilers differ
// in which they hold. Where a thread has no such run the nodes are joined by a constant offset between the two
// numberings, as far as names agree. No more than half of the nodes joined is an Error: the files do not belong
// together.
[[nodiscard]] Result<EtJoin> join_execution_trace(const RecordedRank& recorded, const ExecutionTrace& et);

}  // namespace stepcast::detail
