// The Operations of an execution trace: which work its operators launched, read from the shapes and types
// they were called with.
//
// Operators call operators: `aten::linear` calls `aten::addmm`, which launches the kernel. Every piece of
// work is counted once, at the outermost operator that stands for it (OpRole::kernel); operators that only
// pass work on count where the trace holds nothing below them that does. Under autocast an operator casts its inputs and
// calls itself: the casts and the inner call count, in the types that ran.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "stepcast/base/quantity.h"
#include "stepcast/base/result.h"
#include "stepcast/operation/framework_ops.h"
#include "stepcast/operation/operation.h"
#include "stepcast/rebuild/work_coverage.h"
#include "stepcast/trace/execution_trace.h"
#include "stepcast/trace/recorded_rank.h"

namespace stepcast {

struct TracedOperation {
  std::uint32_t node = 0;  // index into ExecutionTrace::nodes
  Operation operation;
};

// Operators that launch GPU work, as far as the trace tells, and why they have no Operation.
struct UnmodelledOperator {
  std::size_t count = 0;
  std::string why;  // of the first: not known, or what its tensors do not say
};

struct TracedOperations {
  std::vector<TracedOperation> operations;               // by node, in the order of the file
  std::vector<std::int32_t> stands_for;                  // [node] the node that counts its work; -1: none
  std::map<std::string, UnmodelledOperator> unmodelled;  // by operator
  std::size_t launching_operators = 0;                   // with operations, or unmodelled
  std::size_t modelled_operators = 0;                    // with operations
};

struct TracedOperationsOptions {
  bool tf32_allowed = false;       // fp32 products ran on TF32 units; traces do not record it
  bool tf32_convolutions = false;  // fp32 convolutions did
};

[[nodiscard]] TracedOperations traced_operations(const ExecutionTrace& trace,
                                                 const TracedOperationsOptions& options = {});

// `node_of_op`: for each of RecordedRank::cpu_ops the node of the trace, -1: none.
[[nodiscard]] KernelTimeCoverage kernel_time_coverage(const ExecutionTrace& trace,
                                                      const TracedOperations& traced,
                                                      const RecordedRank& recorded,
                                                      std::span<const std::int32_t> node_of_op);

// Joins the two files by their operators. Errors: they do not belong together.
[[nodiscard]] Result<KernelTimeCoverage> kernel_time_coverage(const ExecutionTrace& trace,
                                                              const TracedOperations& traced,
                                                              const RecordedRank& recorded);

}  // namespace stepcast
