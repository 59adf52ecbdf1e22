// The time of a GEMM as tiles that stream through the SMs of a device.
#pragma once

#include "stepcast/cost/device_figures.h"

namespace stepcast::detail {

// `batch` independent GEMMs C[m, n] = A[m, k] B[k, n] in one launch.
struct Product {
  double batch = 1, m = 0, n = 0, k = 0;
  DType dtype = DType::fp32;
  double element_bytes = 4;  // of A and B
  double result_bytes = 4;   // of an element of C
  bool accumulates = false;  // C is also read
};

// The division of a GEMM into work for the SMs.
struct Tiling {
  double tile_m = 0, tile_n = 0;
  double split_k = 1;  // parts of the sum over k, added afterwards
  double tiles = 0;    // including all parts
  double waves = 0;    // tiles of the busiest SM
  double compute_us = 0, memory_us = 0, reduction_us = 0;
  // max(compute, memory) + reduction.
  [[nodiscard]] double time_us() const;
};

// The fastest of the tilings that libraries have.
//
//   tiles = batch ceil(m / tile_m) ceil(n / tile_n) split_k,  waves = ceil(tiles / SMs)
//   compute = waves 2 tile_m tile_n (k / split_k + k0) / (rate of one SM on such a tile)
//   memory = (A + B + C) / (efficiency * memory bandwidth)
//   time = max(compute, memory) + addition of the parts; the caller adds the launch floor
[[nodiscard]] Tiling best_tiling(const Product& product, const DeviceFigures& device);
// The same for an implicit GEMM with channels padded to its steps: only large tiles, without split sums.
[[nodiscard]] Tiling best_padded_tiling(const Product& product, const DeviceFigures& device);

}  // namespace stepcast::detail
