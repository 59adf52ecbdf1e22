// Writes a graph of operations as a Chakra execution trace (.et), which ASTRA-sim and other tools for
// mlcommons/chakra read.
//
// Chakra has whole microseconds. The values of `duration_micros` on one lane add up to the rounded sum of the
// exact durations. Exact durations are in the attribute `duration_nanos`, and delays of dependencies in
// `delay_nanos` (one per data dependency, from the end of the awaited node), if there are any. The reader of
// stepcast uses both; other readers ignore them.
#pragma once

#include <string>

#include "stepcast/trace/operation_graph.h"

namespace stepcast {

// Returns the bytes of the file. Never fails; amounts beyond 2^62 are clamped.
[[nodiscard]] std::string chakra_text(const OperationGraph& graph);

}  // namespace stepcast
