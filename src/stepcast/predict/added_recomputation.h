// Recorded ranks that keep fewer activations: the forward of every block of layers runs again right before its backward,
// as torch.utils.checkpoint does (Chen et al., 2016, "Training deep nets with sublinear memory cost").
//
//   STEPCAST_ASSIGN(AddedRecomputation added, with_recomputation(std::move(recorded)));
//   added.program        // the longer step
//   added.blocks         // which operators run twice: trace_memory.h says what that frees
//
// Blocks of layers are operators of the forward pass (those with a sequence number of autograd) that repeat, one block
// after the other: of all lengths the one whose repetitions cover most of the pass, the shortest of equals. All that the
// thread did in a block runs again on the thread of the backward, in the same time: calls, launches, collectives. Its
// GPU work follows on the streams behind what was launched until then.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "stepcast/base/result.h"
#include "stepcast/trace/recorded_program.h"

namespace stepcast {

// Sequence numbers of autograd: [first, end).
struct SequenceRange {
  std::int64_t first = 0, end = 0;
};

struct AddedRecomputation {
  RecordedProgram program;
  std::vector<std::vector<SequenceRange>> blocks;  // [rank class]
  std::string note;
};

// Errors: traces without sequence numbers, a forward pass in which nothing repeats, ranks that repeat different blocks.
[[nodiscard]] Result<AddedRecomputation> with_recomputation(RecordedProgram recorded);

}  // namespace stepcast
