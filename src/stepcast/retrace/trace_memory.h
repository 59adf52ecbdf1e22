// How much GPU memory the tensors of a recorded step take, from its execution trace, and at another batch.
//
// A storage counts from the first operator that uses it to the last one. What an operator reads before any wrote it was
// there before the step and stays: weights, states of the optimizer as far as the step reads them, and the batch. The
// others come and go. Those as large as a weight are gradients and do not grow with the batch; the rest does. What
// kernels allocate inside, what the allocator wastes and the context of the driver are not in a trace.
#pragma once

#include <span>

#include "stepcast/base/quantity.h"
#include "stepcast/retrace/added_recomputation.h"
#include "stepcast/trace/execution_trace.h"

namespace stepcast {

struct TraceMemory {
  Bytes persistent{};   // all through the step
  Bytes gradients{};    // of the size of a weight, all of them at once
  Bytes activations{};  // the most that the others take at one time
  [[nodiscard]] Bytes at(double batch_ratio) const {
    return persistent + gradients + activations * batch_ratio;
  }
};

// Nothing of it is known (all 0) for traces that name no tensors on a GPU. What the operators of `recomputed` make
// and nothing but their backward reads later goes with the end of each block, and comes again with the begin of its
// backward (added_recomputation.h).
[[nodiscard]] TraceMemory trace_memory(const ExecutionTrace& trace,
                                       std::span<const SequenceRange> recomputed = {});

}  // namespace stepcast
