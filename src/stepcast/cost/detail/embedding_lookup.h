// The published heuristic for the time of a batched embedding lookup (Lin et al., TPDS 2024; the form that
// its research code has), forward and backward with SGD. Rows are cached in L2 as far as the tables in flight
// leave room.
#pragma once

#include "stepcast/cost/collective_curve.h"
#include "stepcast/cost/device_figures.h"
#include "stepcast/operation/operation.h"

namespace stepcast::detail {

struct LookupDevice {
  double sm_count = 0;
  double l2_bytes = 0;
  double l2_per_us = 0;      // bytes
  double vector_per_us = 0;  // FLOPs
  SigmoidForm memory;        // time of a transfer of so many bytes, factor 1
};
// The curve of the memory as measured on A100 by the authors, its plateau scaled to the device.
[[nodiscard]] LookupDevice lookup_device(const DeviceFigures& device);

// Bytes per (bag, table) and what the cache does; every member can be worked out by hand.
struct LookupTraffic {
  double concurrent_warps = 0;
  double tables_in_flight = 0;
  double cached_rows = 0;    // X: of one table
  double distinct_rows = 0;  // U: of one table in one batch
  double hit_rate = 0;
  double l2_bytes = 0, memory_bytes = 0;  // of all tables
  double multiply_adds = 0;
};
[[nodiscard]] LookupTraffic lookup_forward(const LookupShape& shape, double element_bytes,
                                           const LookupDevice& device);
// Here hit_rate is the probability that every row of a bag is cached.
[[nodiscard]] LookupTraffic lookup_backward(const LookupShape& shape, double element_bytes,
                                            const LookupDevice& device);

// Microseconds without the launch floor.
[[nodiscard]] double lookup_us(const LookupShape& shape, double element_bytes, Direction direction,
                               const LookupDevice& device);

}  // namespace stepcast::detail
