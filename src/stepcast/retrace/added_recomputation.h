// Adds recomputation to recorded ranks: the forward of every block of layers runs again right before its backward, as
// torch.utils.checkpoint does (Chen et al., 2016, "Training deep nets with sublinear memory cost").
//
//   STEPCAST_ASSIGN(AddedRecomputation added, with_recomputation(std::move(recorded), RecomputedPart::full));
//   added.program        // the longer step
//   added.blocks         // the operators that run twice; trace_memory.h derives the freed memory
//
// A block of layers is a run of forward operators (those with an autograd sequence number) that repeats back to back. The
// length with the largest share of the forward pass is taken, and the shortest of equally good lengths. Everything the
// thread did in a block runs again on the backward thread in the same time: calls, launches, collectives. Its GPU work
// follows on the streams after the work launched until then.
//
// Selective recomputation (Korthikanti et al., 2022, "Reducing activation recomputation in large transformer models")
// repeats only the core of attention: fused attention, or a batched GEMM, a softmax and the next batched GEMM with all
// operators between them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "stepcast/base/result.h"
#include "stepcast/rebuild/recorded_program.h"

namespace stepcast {

// none: activations are kept; selective: cores of attention; full: whole blocks of layers.
enum class RecomputedPart : std::uint8_t { none, selective, full };
// The name of the value, as in the enum.
[[nodiscard]] std::string_view to_string(RecomputedPart what);

// Autograd sequence numbers [first, end).
struct SequenceRange {
  std::int64_t first = 0, end = 0;
};

// Recorded ranks with recomputation.
struct AddedRecomputation {
  RecordedProgram program;
  // [rank class] sequence numbers of the repeated forward operators.
  std::vector<std::vector<SequenceRange>> blocks;
  // For the user: the number of repeated blocks and their share of the GPU time of the forward pass.
  std::string note;
};

// Requires `what` != none. Errors: traces without sequence numbers, a forward pass without repetition (full) or without
// attention (selective), ranks that repeat different blocks.
[[nodiscard]] Result<AddedRecomputation> with_recomputation(RecordedProgram recorded, RecomputedPart what);

}  // namespace stepcast
