// The number of recorded ranks with samples of their own, derived from the groups of the collectives.
#pragma once

#include <cstdint>

#include "stepcast/base/result.h"
#include "stepcast/rebuild/recorded_program.h"

namespace stepcast {

// Equals the number of recorded ranks if each rank of the job has its own batch. It is smaller if ranks share a batch, as in
// tensor parallelism, which all-reduces activations in the forward pass. At least 1. Error: the groups are ambiguous, as with
// pipelines.
[[nodiscard]] Result<std::int64_t> sample_ranks(const RecordedProgram& recorded);

}  // namespace stepcast
