// A predicted step of a recommendation model, rank by rank. Values only; predict/dlrm_step.h predicts them.
#pragma once

#include <cstdint>
#include <vector>

#include "stepcast/operation/estimate.h"

namespace stepcast {

struct DlrmRank {
  double lookup_us = 0, lookup_backward_us = 0;
  double table_bytes = 0;   // weights and optimizer state in the memory of the GPU
  double memory_bytes = 0;  // with the dense part, activations and a reserve
  double host_bytes = 0;    // tables in the memory of the host
  double sent_bytes = 0;    // of the forward all-to-all, to other ranks
};

struct DlrmStep {
  Estimate time;
  std::vector<DlrmRank> ranks;
  double exchange_us = 0, gradient_exchange_us = 0;
  double lookup_imbalance = 1;  // forward and backward: the busiest rank over the mean
  bool fits = true;
  std::int32_t worst_rank = 0;      // most memory
  double available_bytes = 0;       // of one GPU
  double host_available_bytes = 0;  // of the host of one node: assumed
  // A step of this work at peak rates alone: arithmetic, memory and links, each without the others.
  double bound_us = 0;
};

}  // namespace stepcast
