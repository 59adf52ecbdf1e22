// What a step that was predicted from recorded ranks takes of a GPU's memory.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "stepcast/analyze/forecast.h"
#include "stepcast/platform/platform.h"
#include "stepcast/retrace/added_recomputation.h"
#include "stepcast/trace/execution_trace.h"

namespace stepcast {

// Into forecast.memory, and its notes: from the tensors of the execution traces, [rank class], with activations of
// `batch_ratio` times the recorded batch and without those that the blocks of layers in `recomputed`, [rank class], make
// again. The rank counts that takes most. `machine`: whose GPU; null: not known, and then nothing is.
void add_recorded_memory(std::span<const std::optional<ExecutionTrace>> traces, const Platform* machine,
                         double batch_ratio, const std::vector<std::vector<SequenceRange>>& recomputed,
                         Forecast& forecast);

}  // namespace stepcast
