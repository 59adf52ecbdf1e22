// Which work each kernel, copy and fill of a rank does: the Operation of the operator that launched it.
//
// Copies and fills whose size is recorded are a transfer of that size, whoever launched them. What else an
// operator launched shares the operator's Operations, in the order of the launches:
//   one Operation: every kernel does it in the share that it has of their recorded time;
//   fewer Operations than kernels: neighbouring kernels share one, cut where classes of kernels fit best;
//   more Operations than kernels: neighbouring Operations are one kernel's work, as their sum.
// So the times of an Operation over all kernels add up to how often its operator counts it.
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

struct GpuOperations {
  struct Share {
    std::int32_t operation = kNone;  // index into `operations`; kNone: not known
    double times = 1;                // how often, or which share of it
    bool linked = false;             // an operator launched it
    NameId op;   // known: the operator that counts it; else the innermost operator; invalid: not linked
    NameId why;  // why it is not known
  };
  std::vector<Operation> operations;
  std::vector<Share> of_work;  // [RankGraph::gpu]
  StringTable names;
};

// `node_of_op`: for each of RecordedRank::cpu_ops the node of `trace`, -1: none. `repetition_of_op`: the iteration
// that the op is in, where `trace` stands for several; empty: one.
[[nodiscard]] GpuOperations operations_of_gpu_work(const RankGraph& graph, const ExecutionTrace& trace,
                                                   const TracedOperations& traced,
                                                   std::span<const std::int32_t> node_of_op,
                                                   std::span<const std::int32_t> repetition_of_op = {});

// Operations of a rank that was linked for a replay: from its execution trace; work whose launch the execution
// trace does not hold from the profiler trace's own shapes.
[[nodiscard]] GpuOperations operations_of_gpu_work(const RankGraph& graph,
                                                   const TracedOperationsOptions& options);

[[nodiscard]] KernelTimeCoverage kernel_time(const RankGraph& graph, const GpuOperations& operations);

}  // namespace stepcast::detail
