// A graph of operations as a Chakra execution trace (.et): what ASTRA-sim and other readers of mlcommons/chakra take.
//
// Chakra counts whole microseconds. `duration_micros` of the nodes of one lane add up to their sum all the same; exact
// durations stand in the attribute `duration_nanos`, delays behind dependencies in `delay_nanos` (one for every data
// dependency, from the end of the node waited for), where there are any. readers.h takes both, other readers ignore them.
#pragma once

#include <string>

#include "stepcast/trace/operation_graph.h"

namespace stepcast {

[[nodiscard]] std::string chakra_text(const OperationGraph& graph);

}  // namespace stepcast
