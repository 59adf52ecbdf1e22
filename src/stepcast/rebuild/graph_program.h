// Builds a Program from operation graphs of ranks (trace/operation_graph.h).
//
//   const std::vector<OperationGraph> ranks = ...;           // every rank from its .et file
//   STEPCAST_ASSIGN(RecordedProgram recorded, graph_program(ranks));
//
// A node is a task on the lane of its thread or stream. The nodes of a lane run in the order of their
// recorded starts, or of their ids, as far as the dependencies allow. Simulators for Chakra issue nodes in
// the same way. Sends and receives have separate lanes, so that they do not delay each other.
//
// The k-th collective of a process group is joined over all ranks with that group; a send is joined with the
// receive of the same ends and tag. If several ranks recorded the duration of a collective, the shortest one
// is the transfer, since the other ranks waited. A node without a duration takes 0 until it is priced. With
// recorded starts, `measured` and the measured step are set, else they are empty intervals.
#pragma once

#include <span>

#include "stepcast/base/result.h"
#include "stepcast/rebuild/recorded_program.h"
#include "stepcast/trace/operation_graph.h"

namespace stepcast {

// Errors: no graph, two graphs of one rank, dependencies that form a cycle.
[[nodiscard]] Result<RecordedProgram> graph_program(std::span<const OperationGraph> ranks);

}  // namespace stepcast
