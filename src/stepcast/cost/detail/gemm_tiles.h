// The time of a matrix product as tiles that stream through the SMs of a device.
#pragma once

#include "stepcast/cost/device_figures.h"

namespace stepcast::detail {

// batch times C[m, n] = A[m, k] B[k, n].
struct Product {
  double batch = 1, m = 0, n = 0, k = 0;
  DType dtype = DType::fp32;
  double element_bytes = 4;  // of A and B
  double result_bytes = 4;   // of an element of C
  bool accumulates = false;  // C is read too
};

// How a product is cut into work for the SMs.
struct Tiling {
  double tile_m = 0, tile_n = 0;
  double split_k = 1;  // parts of the sum over k, added up afterwards
  double tiles = 0;    // of all parts
  double waves = 0;    // tiles of the busiest SM
  double compute_us = 0, memory_us = 0, reduction_us = 0;
  [[nodiscard]] double time_us() const;
};

// The tiling with the shortest time, of those that libraries have.
//
//   tiles = batch ceil(m / tile_m) ceil(n / tile_n) split_k,  waves = ceil(tiles / SMs)
//   compute = waves 2 tile_m tile_n (k / split_k + k0) / (rate of one SM on such a tile)
//   memory = (A + B + C) / (efficiency * memory bandwidth)
//   time = max(compute, memory) + adding up the parts; the caller adds the launch floor
[[nodiscard]] Tiling best_tiling(const Product& product, const DeviceFigures& device);
// The same of an implicit product whose channels are padded to its steps: large tiles alone, whose sums are not split.
[[nodiscard]] Tiling best_padded_tiling(const Product& product, const DeviceFigures& device);

}  // namespace stepcast::detail
