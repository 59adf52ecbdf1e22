// Joins ranks that are known only by their execution traces, each built as one block, to one Program.
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

// A collective of one rank. The list of a rank is in execution order.
struct JoinedTask {
  CollectiveOp op = CollectiveOp::unknown;
  NameId name{};
  double message_bytes = -1;
  TaskId task{};
  GroupId group{};
  std::int64_t sender = -1, receiver = -1;  // world ranks of a send; -1: a collective, or unknown
};

// One rank, ready to be joined with the others. Task ids are those returned by add_task.
struct UntimedBlock {
  BlockBuilder block;
  std::vector<JoinedTask> collectives;
  TaskId step_end;  // last task of the step
};

// A group with all ranks. Errors: no ranks, a repeated rank.
[[nodiscard]] Result<RankGroup> all_ranks(std::span<const UntimedRank> ranks);

// Adds the ranks to `out` and joins their collectives by operation and order. If ranks disagree on these,
// each keeps its own. `blocks`: [rank].
[[nodiscard]] Status join_untimed(std::span<const UntimedRank> ranks, std::vector<UntimedBlock> blocks,
                                  RecordedProgram& out);

}  // namespace stepcast
