// Recorded ranks whose gradients are reduced in buckets of another size, as DistributedDataParallel's bucket_cap_mb
// would have it.
//
//   std::vector<std::string> notes;
//   STEPCAST_ASSIGN(RecordedProgram regrouped,
//                   with_bucket_size(std::move(recorded), 100, {.origin = &pricer}, notes));
//
// The gradients are the calls of torch::autograd::AccumulateGrad of the backward, in their order, up to the last
// all-reduce launched from inside one. Their bytes are those that their copy into the bucket writes; where shapes were not
// recorded, the share of the bucket's message that the time of that copy says. A bucket closes with the gradient that
// brings it to the asked size (Li et al., VLDB 2020, section 4.2), the last one with the last gradient, and its
// all-reduce is launched there, behind the computation launched until then, by the same calls as the recorded ones.
// Whoever waited for a recorded all-reduce waits for the one that now brings the last of its gradients.
//
// The time of an all-reduce is that of the recorded ones whose gradients it brings, per byte, times what the new message
// takes over what theirs do: on the straight line through the recorded ones (several ranks, messages of several
// sizes), else by the models of the machine that recorded.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "stepcast/base/result.h"
#include "stepcast/predict/step_prices.h"
#include "stepcast/rebuild/recorded_program.h"

namespace stepcast {

struct BucketPricing {
  StepPricer* origin = nullptr;  // of the machine that recorded; asked where the recorded buckets do not tell
  std::int64_t gpus_per_node = 0;  // of it; 0: all recorded ranks share a node
};

// `bucket_mb`: least MiB of a bucket but the last, > 0. Errors: no all-reduce of gradients in the backward, ranks that
// reduce different gradients, messages of no known size, no models where they are needed.
[[nodiscard]] Result<RecordedProgram> with_bucket_size(RecordedProgram recorded, double bucket_mb,
                                                       const BucketPricing& pricing,
                                                       std::vector<std::string>& notes);

}  // namespace stepcast
