// The operators of a profiler trace in the form of an execution trace, so that their Operations can be read
// where no execution trace was recorded. Needs a trace with shapes (`record_shapes=True`).
//
// A profiler trace does not say where a tensor lies; only operators that launched GPU work, themselves or
// through others, are taken, and their tensors count as on the GPU. It has no shapes of outputs, and those of
// lists of tensors are not read: operators that need these have no Operation and are named. Where old profilers
// left out the values of arguments, too, the operator that takes the output of a convolution shows its extents.
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

struct ProfiledOperators {
  ExecutionTrace trace;
  std::vector<std::int32_t> node_of_op;  // [RecordedRank::cpu_ops]; -1: launched nothing
};

// Errors: no operator of the trace has shapes and types.
[[nodiscard]] Result<ProfiledOperators> profiled_operators(const RecordedRank& recorded);
// Those that launched GPU work inside the step of `graph`. Without shapes none of them has an Operation.
[[nodiscard]] ProfiledOperators profiled_operators(const detail::RankGraph& graph);

}  // namespace stepcast
