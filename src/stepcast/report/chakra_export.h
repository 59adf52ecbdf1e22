// A Program with its times as Chakra execution traces, one for every rank class: recorded ranks, or one rank of every
// pipeline stage of a description.
//
//   const std::vector<OperationGraph> graphs = operation_graphs(flat, costs, steps_of(recorded));
//   STEPCAST_TRY(write_chakra("out/", graphs, inputs));    // out/step.0.et, out/step.1.et, ...
//
// Every task becomes a node on the lane of its stream or thread, behind what it waited for; what a lane's order says is a
// dependency, too, as other simulators know no lanes. Node 1 of every rank lasts until the rank begins; which part of
// the rest is its step stands in the metadata (StepMark), so that what is read back has the same step. Collectives of several ranks carry one `pg_name` and `comm_tag` everywhere; transfers inside a rank class
// have a group of their own. write_chakra_per_rank() writes every rank of a class by itself, with the groups that it is in.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "stepcast/analyze/flat_program.h"
#include "stepcast/base/result.h"
#include "stepcast/program/program.h"
#include "stepcast/rebuild/recorded_program.h"
#include "stepcast/trace/operation_graph.h"
#include "stepcast/workload/rank_groups.h"

namespace stepcast {

// When a rank class begins, and which part of what it does is its step; nothing: all of it.
struct RankStep {
  double begin_us = 0;
  std::optional<RecordedStepFacts> facts{};
};
// [rank class] of recorded ranks.
[[nodiscard]] std::vector<RankStep> steps_of(const RecordedProgram& recorded);

// `steps`: [rank class]; empty: all begin at 0.
[[nodiscard]] std::vector<OperationGraph> operation_graphs(const FlatProgram& flat, const Costs& costs,
                                                           std::span<const RankStep> steps = {});

// Who the ranks of a Program are, one by one, for a file of each.
struct RankTable {
  // World ranks of every rank class; its k-th rank communicates with the k-th of the others.
  std::vector<std::vector<std::uint32_t>> of_class;
  // The ranks that `rank` makes transfers of a group (RankGroup::label) with; empty: nobody knows.
  std::function<std::vector<std::uint32_t>(const RankGroup& group, std::uint32_t rank)> group;

  // Of a Program whose classes are single ranks: recorded ones, or the GPUs of a recommendation model.
  [[nodiscard]] static RankTable of_single_ranks(const Program& program);
  // Of a described step.
  [[nodiscard]] static RankTable of_layout(const Program& program, const RankGroups& groups);
};

// One file per rank, as ASTRA-sim and others read them: process groups are numbers from 1 on, whose ranks stand in
// `comm_groups.json` beside the files ({"1": [0, 1], ...}); what pairs of ranks pass on are sends and receives. Errors:
// those of write_chakra().
[[nodiscard]] Result<std::vector<std::filesystem::path>> write_chakra_per_rank(
    const std::filesystem::path& folder, const FlatProgram& flat, const Costs& costs,
    std::span<const RankStep> steps, const RankTable& ranks,
    std::span<const std::filesystem::path> inputs = {});

// Makes the folder where there is none. The names of the files written. Errors: a folder that cannot be made, a file
// that cannot be written or is one of `inputs`.
[[nodiscard]] Result<std::vector<std::filesystem::path>> write_chakra(
    const std::filesystem::path& folder, std::span<const OperationGraph> graphs,
    std::span<const std::filesystem::path> inputs = {});

}  // namespace stepcast
