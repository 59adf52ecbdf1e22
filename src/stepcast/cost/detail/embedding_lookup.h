// The published heuristic for the time of a batched embedding lookup (Lin et al., TPDS 2024; in the form of
// its research code), forward and backward with SGD. Rows are cached in L2 as far as the tables in flight
// leave room.
#pragma once

#include "stepcast/cost/collective_curve.h"
#include "stepcast/cost/device_figures.h"
#include "stepcast/operation/operation.h"

namespace stepcast::detail {

// Figures of the device that the heuristic needs.
struct LookupDevice {
  double sm_count = 0;
  double l2_bytes = 0;
  double l2_per_us = 0;      // bytes
  double vector_per_us = 0;  // FLOPs
  SigmoidForm memory;        // time of a memory transfer by size, with factor 1
};
// The memory curve that the authors measured on A100, its plateau scaled to the device.
[[nodiscard]] LookupDevice lookup_device(const DeviceFigures& device);

// Traffic of one lookup operator, step by step, so that each member can be checked by hand.
struct LookupTraffic {
  double concurrent_warps = 0;            // on the whole device
  double tables_in_flight = 0;            // tables that concurrent warps work on
  double cached_rows = 0;                 // X: per table
  double distinct_rows = 0;               // U: per table and batch
  double hit_rate = 0;                    // of lookups in L2, forward
  double l2_bytes = 0, memory_bytes = 0;  // over all tables
  double multiply_adds = 0;               // of the backward
};
// Traffic of the forward.
[[nodiscard]] LookupTraffic lookup_forward(const LookupShape& shape, double element_bytes,
                                           const LookupDevice& device);
// Traffic of the backward. Here hit_rate is the probability that all rows of a bag are cached.
[[nodiscard]] LookupTraffic lookup_backward(const LookupShape& shape, double element_bytes,
                                            const LookupDevice& device);

// Microseconds without the launch floor.
[[nodiscard]] double lookup_us(const LookupShape& shape, double element_bytes, Direction direction,
                               const LookupDevice& device);

}  // namespace stepcast::detail
