// Regroups the gradient all-reduces of recorded ranks into buckets of another size, like DistributedDataParallel's
// bucket_cap_mb.
//
//   std::vector<std::string> notes;
//   STEPCAST_ASSIGN(RecordedProgram regrouped,
//                   with_bucket_size(std::move(recorded), 100, {.origin = &pricer}, notes));
//
// The gradients are the calls of torch::autograd::AccumulateGrad in the backward, in order, up to the last all-reduce
// launched inside one. Their bytes are those written by their copy into the bucket. Without recorded shapes, the message of
// the bucket is divided in proportion to the copy times. A bucket closes with the gradient that reaches the requested size
// (Li et al., VLDB 2020, section 4.2), the last bucket with the last gradient. Its all-reduce is launched at that point by
// the same calls as the recorded ones, after the computation launched until then. Work that waited for a recorded
// all-reduce waits for the new one with the last of its gradients.
//
// The time of an all-reduce is the recorded time of its gradients, per byte, times the modelled ratio of the new message to
// the recorded ones. The ratio comes from the straight line through the recorded all-reduces (several ranks and message
// sizes), else from the models of the machine that recorded.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "stepcast/base/result.h"
#include "stepcast/predict/step_prices.h"
#include "stepcast/rebuild/recorded_program.h"

namespace stepcast {

// Inputs to price all-reduces of other sizes.
struct BucketPricing {
  // The machine that recorded; used if the recorded buckets do not determine a line.
  StepPricer* origin = nullptr;
  std::int64_t gpus_per_node = 0;  // of `origin`; 0: all recorded ranks share a node
};

// `bucket_mb`: minimum MiB of every bucket except the last, > 0. Appends to `notes` the old and new buckets and the source of
// their times. Errors: no all-reduce of gradients in the backward, ranks that reduce different gradients, unknown message
// sizes, missing models.
[[nodiscard]] Result<RecordedProgram> with_bucket_size(RecordedProgram recorded, double bucket_mb,
                                                       const BucketPricing& pricing,
                                                       std::vector<std::string>& notes);

}  // namespace stepcast
