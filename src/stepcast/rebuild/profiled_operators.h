// Converts the operators of a profiler trace into the form of an execution trace, so that their Operations
// can be read without an execution trace. The trace must have shapes (`record_shapes=True`).
//
// A profiler trace does not contain the location of tensors. Only operators that launched GPU work, directly
// or through other operators, are converted, and their tensors count as on the GPU. The trace has no shapes
// of outputs, and shapes of lists of tensors are not read; operators that need them have no Operation and are
// reported. If an old profiler also omitted the values of arguments, the output shape of a convolution is
// taken from the operator that uses it.
#pragma once

#include <cstdint>
#include <vector>

#include "stepcast/base/result.h"
#include "stepcast/trace/execution_trace.h"
#include "stepcast/trace/recorded_rank.h"

namespace stepcast {

namespace detail {
struct RankGraph;
}

// The converted trace.
struct ProfiledOperators {
  ExecutionTrace trace;
  std::vector<std::int32_t> node_of_op;  // [RecordedRank::cpu_ops] node; -1: launched no GPU work
};

// Converts the whole file. Error: no operator has shapes and types.
[[nodiscard]] Result<ProfiledOperators> profiled_operators(const RecordedRank& recorded);
// Converts the operators that launched GPU work in the step of `graph`. Without shapes, none of them has an
// Operation.
[[nodiscard]] ProfiledOperators profiled_operators(const detail::RankGraph& graph);

}  // namespace stepcast
