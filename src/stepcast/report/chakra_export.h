// Exports a Program with its times as Chakra execution traces, one file per rank class: each recorded rank,
// or one rank of each pipeline stage of a described step.
//
//   const std::vector<OperationGraph> graphs = operation_graphs(flat, costs, steps_of(recorded));
//   STEPCAST_TRY(write_chakra("out/", graphs, inputs));    // out/step.0.et, out/step.1.et, ...
//
// Each task becomes a node on the lane of its stream or thread and depends on what it waited for. The order
// on a lane is written as dependencies, too, since other simulators have no lanes. Node 1 of each rank lasts
// until the rank begins. The metadata (StepMark) says which part of the remainder is the step, so that a
// trace that is read back has the same step. Collectives of several ranks have the same `pg_name` and
// `comm_tag` on all of them; transfers inside a rank class have a group of their own. write_chakra_per_rank()
// writes each rank of a class separately, with the groups it belongs to.
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

// When a rank class begins (in microseconds), and which part of its tasks is the step; nothing: all tasks.
struct RankStep {
  double begin_us = 0;
  std::optional<RecordedStepFacts> facts{};
};
// [rank class] the steps of recorded ranks.
[[nodiscard]] std::vector<RankStep> steps_of(const RecordedProgram& recorded);

// One graph per rank class. `steps`: [rank class]; empty: all ranks begin at 0.
[[nodiscard]] std::vector<OperationGraph> operation_graphs(const FlatProgram& flat, const Costs& costs,
                                                           std::span<const RankStep> steps = {});

// The world ranks of a Program, for an export with one file per rank.
struct RankTable {
  // [rank class] world ranks. The k-th rank of a class communicates with the k-th rank of the other classes.
  std::vector<std::vector<std::uint32_t>> of_class;
  // The ranks of the transfers that `rank` makes in a group with this label (RankGroup::label); empty:
  // unknown.
  std::function<std::vector<std::uint32_t>(const RankGroup& group, std::uint32_t rank)> group;

  // For a Program in which each class is a single rank: recorded ranks, or the GPUs of a recommendation
  // model.
  [[nodiscard]] static RankTable of_single_ranks(const Program& program);
  // For a described step. `groups` must outlive the table.
  [[nodiscard]] static RankTable of_layout(const Program& program, const RankGroups& groups);
};

// Writes one file per rank, as ASTRA-sim and other tools read them. Process groups have numbers from 1, and
// `comm_groups.json` in the same folder lists their ranks ({"1": [0, 1], ...}). Transfers between two ranks
// become sends and receives. Returns the files written. Errors: those of write_chakra().
[[nodiscard]] Result<std::vector<std::filesystem::path>> write_chakra_per_rank(
    const std::filesystem::path& folder, const FlatProgram& flat, const Costs& costs,
    std::span<const RankStep> steps, const RankTable& ranks,
    std::span<const std::filesystem::path> inputs = {});

// Writes one file per graph, "step.RANK.et". Creates the folder if needed. Returns the files written. Errors:
// a folder that cannot be created, a folder with traces of another export, a file that cannot be written or
// is one of `inputs`.
[[nodiscard]] Result<std::vector<std::filesystem::path>> write_chakra(
    const std::filesystem::path& folder, std::span<const OperationGraph> graphs,
    std::span<const std::filesystem::path> inputs = {});

}  // namespace stepcast
