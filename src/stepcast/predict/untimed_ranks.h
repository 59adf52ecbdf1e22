// Ranks that are known by their execution traces alone, each built as one block, joined to one Program.
#pragma once

#include <span>
#include <vector>

#include "stepcast/base/result.h"
#include "stepcast/operation/collective_kind.h"
#include "stepcast/program/block.h"
#include "stepcast/rebuild/recorded_program.h"
#include "stepcast/trace/execution_trace.h"

namespace stepcast {

struct UntimedRank;

// A collective of a rank, at its place in the order of the rank's collectives.
struct JoinedTask {
  CollectiveOp op = CollectiveOp::unknown;
  NameId name{};
  double message_bytes = -1;
  TaskId task{};
  GroupId group{};
  std::int64_t sender = -1, receiver = -1;  // world ranks of a send; -1: a collective, or not recorded
};

// One rank, ready to be joined with the others. Task ids are those that add_task gave.
struct UntimedBlock {
  BlockBuilder block;
  std::vector<JoinedTask> collectives;
  TaskId step_end;  // the step ends with it
};

// All ranks as one group. Errors: no ranks, one rank twice.
[[nodiscard]] Result<RankGroup> all_ranks(std::span<const UntimedRank> ranks);

// Adds the ranks to `out` and joins their collectives by operation and order; where ranks do not agree on how
// many there were, each keeps its own. `blocks` belong to `ranks`, one each.
[[nodiscard]] Status join_untimed(std::span<const UntimedRank> ranks, std::vector<UntimedBlock> blocks,
                                  RecordedProgram& out);

}  // namespace stepcast
