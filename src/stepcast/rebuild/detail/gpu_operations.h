// The work of each kernel, copy and fill of a rank: the Operation of the operator that launched it.
//
// Copies and fills with a recorded size are a transfer of that size, independent of the operator. The other
// work of an operator shares its Operations, in the order of the launches:
//   one Operation: each kernel does a part, in proportion to its recorded time
//   fewer Operations than kernels: neighbouring kernels share one; the cut maximises the match of kernel classes
//   more Operations than kernels: a kernel does the sum of neighbouring Operations
// The shares of an Operation over all kernels add up to the number of times that its operator executes it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "stepcast/base/string_table.h"
#include "stepcast/operation/operation.h"
#include "stepcast/rebuild/detail/rank_graph.h"
#include "stepcast/rebuild/traced_operations.h"
#include "stepcast/rebuild/work_coverage.h"

namespace stepcast::detail {

// The result for one rank.
struct GpuOperations {
  // The operation of one piece of GPU work.
  struct Share {
    std::int32_t operation = kNone;  // index into `operations`; kNone: not known
    double times = 1;                // number of executions, or the share of one
    bool linked = false;             // an operator launched it
    // If the work is known, the operator that counts it, else the innermost operator; invalid if not linked.
    NameId op;
    NameId why;  // reason why it is not known
  };
  std::vector<Operation> operations;
  std::vector<Share> of_work;  // [RankGraph::gpu]
  StringTable names;
};

// `node_of_op`: [RecordedRank::cpu_ops] node of `trace`, -1: none. `repetition_of_op`: iteration of the
// operator if `trace` represents several; empty: one iteration.
[[nodiscard]] GpuOperations operations_of_gpu_work(const RankGraph& graph, const ExecutionTrace& trace,
                                                   const TracedOperations& traced,
                                                   std::span<const std::int32_t> node_of_op,
                                                   std::span<const std::int32_t> repetition_of_op = {});

// The operations of a rank that was linked for a replay: from its execution trace, and for work that the
// execution trace does not cover, from the shapes in the profiler trace.
[[nodiscard]] GpuOperations operations_of_gpu_work(const RankGraph& graph,
                                                   const TracedOperationsOptions& options);

// Sums the recorded GPU time by whether its work is known.
[[nodiscard]] KernelTimeCoverage kernel_time(const RankGraph& graph, const GpuOperations& operations);

}  // namespace stepcast::detail
