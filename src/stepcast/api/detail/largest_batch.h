// The largest batch that fits the memory with a layout, and why one more does not.
#pragma once

#include <string>
#include <vector>

#include "stepcast/api/stepcast.h"
#include "stepcast/base/quantity.h"
#include "stepcast/base/result.h"
#include "stepcast/describe/job.h"

namespace stepcast::detail {

// `job.layout` takes the largest micro-batch that fits: of those that divide the batch of `said`; where that states none, of
// all, and the batch is one micro-batch for every data-parallel rank, or one for every stage of its pipeline. A note says
// what the next takes. Errors: not even one sequence fits; a batch wanted as large as can be, with a micro-batch said.
[[nodiscard]] Status take_largest_batch(LargestBatch wanted, const JobSettings& said, Bytes memory,
                                        ResolvedJob& job);

}  // namespace stepcast::detail
