// Recorded ranks that keep fewer activations: the forward of every block of layers runs again right before its backward,
// as torch.utils.checkpoint does (Chen et al., 2016, "Training deep nets with sublinear memory cost").
//
//   STEPCAST_ASSIGN(AddedRecomputation added, with_recomputation(std::move(recorded), RecomputedPart::full));
//   added.program        // the longer step
//   added.blocks         // which operators run twice: trace_memory.h says what that frees
//
// Blocks of layers are operators of the forward pass (those with a sequence number of autograd) that repeat, one block
// after the other: of all lengths the one whose repetitions cover most of the pass, the shortest of equals. All that the
// thread did in a block runs again on the thread of the backward, in the same time: calls, launches, collectives. Its
// GPU work follows on the streams behind what was launched until then.
//
// Selective recomputation (Korthikanti et al., 2022, "Reducing activation recomputation in large transformer models") runs
// the core of attention again: fused attention, or a batched product, a softmax and the next batched product with all
// between them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "stepcast/base/result.h"
#include "stepcast/rebuild/recorded_program.h"

namespace stepcast {

enum class RecomputedPart : std::uint8_t { none, selective, full };
[[nodiscard]] std::string_view to_string(RecomputedPart what);

// Sequence numbers of autograd: [first, end).
struct SequenceRange {
  std::int64_t first = 0, end = 0;
};

struct AddedRecomputation {
  RecordedProgram program;
  std::vector<std::vector<SequenceRange>> blocks;  // [rank class]
  std::string note;
};

// `what` is not none. Errors: traces without sequence numbers, a forward pass in which nothing repeats or no attention
// is, ranks that repeat different blocks.
[[nodiscard]] Result<AddedRecomputation> with_recomputation(RecordedProgram recorded, RecomputedPart what);

}  // namespace stepcast
