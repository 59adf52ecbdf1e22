// How many ranks of a recorded job take samples of their own, told by who is in its collectives.
#pragma once

#include <cstdint>

#include "stepcast/base/result.h"
#include "stepcast/rebuild/recorded_program.h"

namespace stepcast {

// Of the recorded ranks: all where every rank of the job has a batch; fewer where ranks share one, as in tensor parallelism, which
// all-reduces activations in the forward pass. At least 1. Error: the groups of the collectives do not tell, as with pipelines.
[[nodiscard]] Result<std::int64_t> sample_ranks(const RecordedProgram& recorded);

}  // namespace stepcast
