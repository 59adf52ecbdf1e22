// A Program with its times as Chakra execution traces, one for every rank class: recorded ranks, or one rank of every
// pipeline stage of a description.
//
//   const std::vector<OperationGraph> graphs = operation_graphs(flat, costs, start_offsets);
//   STEPCAST_TRY(write_chakra("out/", graphs, inputs));    // out/step.0.et, out/step.1.et, ...
//
// Every task becomes a node on the lane of its stream or thread, behind what it waited for; what a lane's order says is a
// dependency, too, as other simulators know no lanes. Node 1 of every rank stands for the begin of its step and lasts
// until then. Collectives of several ranks carry one `pg_name` and `comm_tag` everywhere; transfers inside a rank class
// have a group of their own.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "stepcast/analyze/flat_program.h"
#include "stepcast/base/result.h"
#include "stepcast/program/program.h"
#include "stepcast/trace/operation_graph.h"

namespace stepcast {

// `start_offset_us`: when each rank class begins; empty: all at 0.
[[nodiscard]] std::vector<OperationGraph> operation_graphs(const FlatProgram& flat, const Costs& costs,
                                                           std::span<const double> start_offset_us = {});

// Makes the folder where there is none. The names of the files written. Errors: a folder that cannot be made, a file
// that cannot be written or is one of `inputs`.
[[nodiscard]] Result<std::vector<std::filesystem::path>> write_chakra(
    const std::filesystem::path& folder, std::span<const OperationGraph> graphs,
    std::span<const std::filesystem::path> inputs = {});

}  // namespace stepcast
