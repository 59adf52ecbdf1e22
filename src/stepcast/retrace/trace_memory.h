// GPU memory of the tensors of a recorded step, from its execution trace, and its value at another batch.
//
// A storage is live from its first to its last use by an operator. Storages that are read before any write existed before the
// step and stay: weights, optimizer states that the step reads, and the batch. All others are temporary. Temporary storages
// with the size of a weight are gradients and do not grow with the batch; the rest does. Not in a trace: allocations inside
// kernels, allocator fragmentation and the driver context.
#pragma once

#include <span>

#include "stepcast/base/quantity.h"
#include "stepcast/retrace/added_recomputation.h"
#include "stepcast/trace/execution_trace.h"

namespace stepcast {

// Memory of one rank by kind.
struct TraceMemory {
  Bytes persistent{};   // live during the whole step
  Bytes gradients{};    // temporary, with the size of a weight; sum of all
  Bytes activations{};  // peak of the other temporary storages
  // Total at `batch_ratio` times the recorded batch.
  [[nodiscard]] Bytes at(double batch_ratio) const {
    return persistent + gradients + activations * batch_ratio;
  }
};

// All 0 for traces that name no GPU tensors. `recomputed`: blocks with recomputation (added_recomputation.h). Tensors made by
// their operators and read later only by their backward are freed at the end of the block and live again from the start of
// its backward.
[[nodiscard]] TraceMemory trace_memory(const ExecutionTrace& trace,
                                       std::span<const SequenceRange> recomputed = {});

}  // namespace stepcast
