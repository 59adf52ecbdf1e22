// A closed form of the time of a kernel with a handful of constants that are fitted per record: the quantity
// that trees and Gaussian processes correct. It is a roofline with matrix arithmetic in tiles and waves:
//
//   t = floor + (c^q + b^q)^(1/q)       c: compute_factor * time of the tiles at peak
//                                       b: memory_factor * compulsory bytes / bandwidth
//
// Kernels that work row by row (norms, lookups) also add unit_us * rows / SMs, the overhead per row, and
// chain_us * elements of one row, which are processed one after the other even if there are few rows.
//
// All inputs are stored in the record, so a record gives the same times even when figures of the platform or
// the analytic model change.
#pragma once

#include <array>

#include "stepcast/operation/operation.h"

namespace stepcast {

struct ReferenceParameters {
  double peak_TFLOPs = 1;       // of the units that the operation uses
  double bandwidth_GBps = 1;    // of the memory
  double sm_count = 1;          // streaming multiprocessors
  double compute_factor = 1.2;  // >= 1; 1: full tiles run at peak
  double memory_factor = 1.2;   // >= 1; 1: peak bandwidth
  double floor_us = 2;          // of an empty kernel, or of all launches of an unfused operation
  double sharpness = 3;         // q: 1 adds both times, a large value takes the longer one
  double tile_cost = 12;        // elements; small tiles of t x t take 1 + 2 tile_cost / t as long
  double depth_cost = 64;       // elements of k; start and end of a tile
  // At least 1: slowdown of arithmetic that lasts for milliseconds, when clocks fall to the power limit.
  double sustained_factor = 1;
  double unit_us = 0;   // of an SM for one row or bag
  double chain_us = 0;  // of one element of a row, or one lookup of a bag
};

// Amounts of one operation that do not depend on fitted constants.
struct ReferenceTerms {
  static constexpr int kMostTiles = 40;
  double bytes_us = 0;                // compulsory bytes at peak bandwidth
  double flops_us = 0;                // arithmetic at peak, without tiles
  double units_of_sm = 0, chain = 0;  // rows per SM, elements of a row; 0: not row by row
  // GEMMs: candidate tiles; the fastest tile of each GEMM counts.
  struct Tile {
    double work_us_per_k;    // waves * arithmetic of a wave at peak, per element of k
    double k;                // elements of k of one tile
    double inverse_extents;  // 1 / rows + 1 / columns
    double split_us;         // addition of the parts of k, through memory
  };
  int products = 0;
  std::array<int, 3> first_tile{};  // of GEMM i; the entry after the last GEMM is the end
  std::array<Tile, kMostTiles> tiles;
};
// Amounts of an operation, with rates of `device` but without its fitted constants.
[[nodiscard]] ReferenceTerms reference_terms(const Operation& operation, const ReferenceParameters& device);
// Reference time in us.
[[nodiscard]] double reference_time_us(const ReferenceTerms& terms, const ReferenceParameters& parameters);

[[nodiscard]] double reference_time_us(const Operation& operation, const ReferenceParameters& parameters);

// Adds the GEMMs of a direction of C[m, n] = A[m, k] B[k, n], and their elements to `elements`.
void add_reference_products(ReferenceTerms& terms, const ReferenceParameters& device, const GemmShape& s,
                            Direction direction, double& elements);
// The implicit GEMM of a convolution: m output positions, n output and k input values per group.
[[nodiscard]] GemmShape implicit_gemm(const ConvolutionShape& shape);
// Pairs of a query and a key that remain under causal masks and windows, per head and sequence.
[[nodiscard]] double attended_pairs(const AttentionShape& shape);

}  // namespace stepcast
