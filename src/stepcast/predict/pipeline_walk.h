// All passes of a pipeline in one list, ordered so that every pass comes after those it waits for. A schedule
// can then be evaluated in one linear scan. A cut in the list marks where a step of more micro-batches would
// repeat itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "stepcast/workload/pipeline_schedule.h"

namespace stepcast {

// One pass of one stage with everything that depends only on the shape.
struct WalkStep {
  std::uint32_t cell = 0;  // chunk x micro_batches + micro-batch
  std::uint16_t stage = 0, chunk = 0;
  PassKind kind = PassKind::forward;
  bool first = false, last = false;  // whether it is the first or last micro-batch of the step
  bool receives = false;             // waits for a message that another pass left in its cell
  bool sends = false;                // to the next chunk (forward) or the previous one (backward)
  bool wraps = false;                // from the last stage to the first, or back (interleaved schedules)
  bool stays = false;                // sender and receiver are the same stage (V-shaped schedules)
};

// A part of the walk that can be repeated any number of times. At its end every stage has advanced by exactly
// one round of `micro_batches` micro-batches compared with its begin: same passes, later micro-batches.
struct WalkRound {
  std::uint32_t micro_batches = 1;
  std::size_t begin = 0, end = 0;  // index range in PipelineWalk::steps
  // Cells of messages that were sent but not yet used at the end of the round. At its begin, the same
  // messages are `micro_batches` cells earlier.
  std::vector<std::uint32_t> forward_under_way, backward_under_way;
};

// The passes of one shape in an order of execution.
struct PipelineWalk {
  PipelineShape shape;
  std::vector<WalkStep> steps;
  std::optional<WalkRound> round;  // the latest one; nullopt with GPipe and with few micro-batches
};

// `shape` must pass check(). O(passes).
[[nodiscard]] PipelineWalk pipeline_walk(const PipelineShape& shape);

// Micro-batches of approximately the shortest walk with a round; at most shape.micro_batches. The difference
// to shape.micro_batches is a multiple of round_micro_batches().
[[nodiscard]] std::uint32_t short_walk_micro_batches(const PipelineShape& shape);
// Micro-batches in which the order of a stage repeats: the number of stages if interleaved, otherwise 1.
[[nodiscard]] std::uint32_t round_micro_batches(const PipelineShape& shape);

}  // namespace stepcast
