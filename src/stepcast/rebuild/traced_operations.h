// The Operations of an execution trace: the work that its operators launched, derived from the shapes and
// types of their arguments.
//
// Operators call other operators: `aten::linear` calls `aten::addmm`, which launches the kernel. Each piece
// of work is counted once, at the outermost operator that is modelled (OpRole::kernel). Operators that only
// pass work on count if the trace has no modelled operator below them. Under autocast, an operator casts its
// inputs and calls itself; the casts and the inner call count, with the types that ran.
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

// One operation of an operator.
struct TracedOperation {
  std::uint32_t node = 0;  // index into ExecutionTrace::nodes
  Operation operation;
};

// Operators that launch GPU work as far as the trace shows, but have no Operation, with the reason.
struct UnmodelledOperator {
  std::size_t count = 0;
  std::string why;  // of the first one: operator not known, or information missing in its tensors
};

// The operations of a trace.
struct TracedOperations {
  std::vector<TracedOperation> operations;               // by node, in the order of the file
  std::vector<std::int32_t> stands_for;                  // [node] the node that counts its work; -1: none
  std::map<std::string, UnmodelledOperator> unmodelled;  // by name of the operator
  std::size_t launching_operators = 0;                   // number of operators with operations or unmodelled
  std::size_t modelled_operators = 0;                    // number of operators with operations
};

// Assumptions that traces do not record.
struct TracedOperationsOptions {
  bool tf32_allowed = false;       // fp32 GEMMs ran on TF32 units
  bool tf32_convolutions = false;  // fp32 convolutions ran on TF32 units
};

// Collects the operations of all operators. Never fails: operators without operations are in `unmodelled`.
[[nodiscard]] TracedOperations traced_operations(const ExecutionTrace& trace,
                                                 const TracedOperationsOptions& options = {});

// The share of recorded GPU time with known work. `node_of_op`: [RecordedRank::cpu_ops] node of the trace,
// -1: none.
[[nodiscard]] KernelTimeCoverage kernel_time_coverage(const ExecutionTrace& trace,
                                                      const TracedOperations& traced,
                                                      const RecordedRank& recorded,
                                                      std::span<const std::int32_t> node_of_op);

// The same after joining the two files by their operators. Error: the files do not belong together.
[[nodiscard]] Result<KernelTimeCoverage> kernel_time_coverage(const ExecutionTrace& trace,
                                                              const TracedOperations& traced,
                                                              const RecordedRank& recorded);

}  // namespace stepcast
