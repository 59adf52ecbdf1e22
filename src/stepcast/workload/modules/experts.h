// The experts of a layer as a module: router, dispatch and combine of tokens, experts, shared experts.
#pragma once

#include "stepcast/workload/modules/layer_module.h"

namespace stepcast {

[[nodiscard]] const LayerModule& experts();

// Bytes that the backward pass of a layer needs from its experts, on one rank.
struct ExpertBytes {
  double received = 0;  // received tokens
  double wide = 0;      // one matrix of FFN activations
  double shared = 0;    // of shared experts
};
[[nodiscard]] ExpertBytes expert_bytes(const detail::ActivationCount& count);

}  // namespace stepcast
