// Ranks that are known by graphs of their operations (operation_graph.h) as one Program.
//
//   const std::vector<OperationGraph> ranks = ...;           // every rank from its .et file
//   STEPCAST_ASSIGN(RecordedProgram recorded, graph_program(ranks));
//
// A node is a task on the lane of its thread or stream; of a lane, nodes run in the order of their recorded starts, or
// of their ids, as far as the dependencies leave a choice (how the simulators that Chakra was made for issue them).
// Sends and receives have lanes of their own: neither holds up the other.
//
// The k-th collective of a process group on one rank is joined with the k-th of every other rank that has that group; a
// send with the receive of the same ends and tag. Where several ranks recorded how long a collective took, the shortest
// stay is the transfer: the others waited. A node without a duration lasts 0 until it is priced. With recorded starts
// `measured` and the measured step follow from them; without, both are empty intervals.
#pragma once

#include <span>

#include "stepcast/base/result.h"
#include "stepcast/rebuild/recorded_program.h"
#include "stepcast/trace/operation_graph.h"

namespace stepcast {

// Errors: no graph, two graphs of one rank, nodes that wait for each other in a circle.
[[nodiscard]] Result<RecordedProgram> graph_program(std::span<const OperationGraph> ranks);

}  // namespace stepcast
