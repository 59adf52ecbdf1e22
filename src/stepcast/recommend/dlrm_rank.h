// The predicted step of a recommendation model, per rank. Plain values; dlrm_step.h computes them.
#pragma once

#include <cstdint>
#include <vector>

#include "stepcast/operation/estimate.h"

namespace stepcast {

// One rank. Times are in microseconds.
struct DlrmRank {
  // Lookups, and their backward pass with the update.
  double lookup_us = 0, lookup_backward_us = 0;
  // Bytes of weights and optimizer state in GPU memory.
  double table_bytes = 0;
  // Bytes of GPU memory, including the dense part, activations and a reserve.
  double memory_bytes = 0;
  // Bytes of tables in host memory.
  double host_bytes = 0;
  // Bytes sent to other ranks in the forward all-to-all.
  double sent_bytes = 0;
};

// The step of all ranks.
struct DlrmStep {
  // Step time with its uncertainty.
  Estimate time;
  std::vector<DlrmRank> ranks;
  // Durations of the all-to-alls of vectors and of gradients.
  double exchange_us = 0, gradient_exchange_us = 0;
  double lookup_imbalance = 1;  // lookups forward and backward: slowest rank over the mean
  // Every GPU and host has enough memory.
  bool fits = true;
  std::int32_t worst_rank = 0;      // the rank that needs most GPU memory
  double available_bytes = 0;       // GPU memory of one rank
  double host_available_bytes = 0;  // assumed host memory of one node
  // Lower bound at peak rates: the largest of arithmetic, memory and link time, in microseconds.
  double bound_us = 0;
};

}  // namespace stepcast
