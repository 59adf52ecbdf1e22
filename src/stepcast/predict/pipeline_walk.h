// All passes of a pipeline in one list: every pass behind those it waits for, so that one look at each is
// enough to evaluate a schedule. And the place in that list where a step of more micro-batches repeats
// itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "stepcast/workload/pipeline_schedule.h"

namespace stepcast {

struct WalkStep {
  std::uint32_t cell = 0;  // chunk x micro_batches + micro-batch
  std::uint16_t stage = 0, chunk = 0;
  PassKind kind = PassKind::forward;
  bool first = false, last = false;  // micro-batch of the step
  bool receives = false;             // waits for what another pass left in its cell
  bool sends = false;                // to the chunk behind (forward) or in front (backward)
  bool wraps = false;                // from the last stage to the first, or back
  bool stays = false;                // the other chunk is of the same stage
};

// A cut through the walk at which every stage is exactly one round, `micro_batches` of them, further than at
// the cut before: same passes, later micro-batches. What lies between the two cuts can be repeated any number
// of times.
struct WalkRound {
  std::uint32_t micro_batches = 1;
  std::size_t begin = 0, end = 0;  // steps of the walk
  // Messages at the end that were sent and not used yet: cells. The same messages one round before are
  // `micro_batches` cells in front.
  std::vector<std::uint32_t> forward_under_way, backward_under_way;
};

struct PipelineWalk {
  PipelineShape shape;
  std::vector<WalkStep> steps;
  std::optional<WalkRound> round;  // as late as possible; none with GPipe and with few micro-batches
};

// `shape` must pass check().
[[nodiscard]] PipelineWalk pipeline_walk(const PipelineShape& shape);

// Micro-batches of the shortest walk of this shape that has a round, about; at most shape.micro_batches. Both
// leave the same rest when divided by the micro-batches of a round.
[[nodiscard]] std::uint32_t short_walk_micro_batches(const PipelineShape& shape);
// Micro-batches of one round.
[[nodiscard]] std::uint32_t round_micro_batches(const PipelineShape& shape);

}  // namespace stepcast
