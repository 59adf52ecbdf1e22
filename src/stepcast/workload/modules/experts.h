// The experts of a layer as a module: router, tokens to their experts and back, experts, shared experts.
#pragma once

#include "stepcast/workload/modules/layer_module.h"

namespace stepcast {

[[nodiscard]] const LayerModule& experts();

// Bytes that the backward pass of a layer keeps of its experts, on one rank.
struct ExpertBytes {
  double received = 0;  // tokens as they come
  double wide = 0;      // one matrix of the FFNs
  double shared = 0;    // of shared experts
};
[[nodiscard]] ExpertBytes expert_bytes(const detail::ActivationCount& count);

}  // namespace stepcast
