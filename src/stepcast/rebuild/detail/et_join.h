// Joins an execution trace (ET) and a profiler trace of the same run. Both contain the operators of a thread
// in the order of their start, so the sequences of names agree.
#pragma once

#include <cstdint>
#include <vector>

#include "stepcast/base/result.h"
#include "stepcast/trace/execution_trace.h"
#include "stepcast/trace/recorded_rank.h"

namespace stepcast::detail {

// The result of a join.
struct EtJoin {
  std::vector<std::int32_t> node_of_op;  // [RecordedRank::cpu_ops] -> ExecutionTrace::nodes; -1: none
  // [RecordedRank::cpu_ops] number of the identical iteration that contains the operator, from 0; -1: not
  // joined.
  std::vector<std::int32_t> repetition_of_op;
  std::uint64_t joined = 0;  // nodes with at least one operator
  std::uint64_t nodes = 0;   // nodes with names that both files contain
  // Nodes without any event in the profiler trace: process and threads, set-up of process groups,
  // annotations.
  std::uint64_t only_in_execution_trace = 0;
};

// The execution trace has one iteration, which may be anywhere in a profiler trace with several. Each thread
// of the ET is searched in each recorded thread as a contiguous sequence of names, and all occurrences are
// joined, one per identical iteration. Names that only one file contains do not count. If this fails,
// annotations do not count either, since profilers record different ones. Threads without a match are joined
// by a constant offset between the two numberings, if the names agree. Error: at most half of the nodes were
// joined, so the files do not belong together.
[[nodiscard]] Result<EtJoin> join_execution_trace(const RecordedRank& recorded, const ExecutionTrace& et);

}  // namespace stepcast::detail
