#include "stepcast/cost/families/reference_time.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "stepcast/cost/detail/shape_cost.h"

// Reference times: tiles and split sums of GEMMs, attended pairs, and the combination of arithmetic and
// memory.

namespace stepcast {
namespace {

using detail::at_least_one;

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

struct TileShape {
  std::int64_t rows, columns;
};
// Output tiles that common GEMM libraries choose from.
constexpr TileShape kTileShapes[] = {{256, 128}, {128, 256}, {128, 128}, {128, 64},
                                     {64, 128},  {64, 64},   {32, 64},   {64, 32}};
// Parts of k shorter than this are not split off.
constexpr std::int64_t kLeastSplit = 128;
constexpr std::int64_t kMostSplits = 16;
// Above the extent of any tensor, and far from the limits of the integer arithmetic below.
constexpr std::int64_t kMostExtent = std::int64_t{1} << 40;

// Adds the candidate tiles of one GEMM: each tile shape with the whole k, and with k split until all SMs are
// busy.
void add_product(ReferenceTerms& terms, const ReferenceParameters& device, std::int64_t batch, std::int64_t m,
                 std::int64_t n, std::int64_t k) {
  m = std::clamp<std::int64_t>(m, 1, kMostExtent);
  n = std::clamp<std::int64_t>(n, 1, kMostExtent);
  k = std::clamp<std::int64_t>(k, 1, kMostExtent);
  const double flops_per_us_of_sm = device.peak_TFLOPs * 1e6 / device.sm_count;
  int next = terms.first_tile[static_cast<std::size_t>(terms.products)];
  for (const TileShape& tile : kTileShapes) {
    const double tiles =
        at_least_one(ceil_div(m, tile.rows)) * at_least_one(ceil_div(n, tile.columns)) * at_least_one(batch);
    const double area = static_cast<double>(tile.rows * tile.columns);
    const double inverse_extents = 1 / static_cast<double>(tile.rows) + 1 / static_cast<double>(tile.columns);
    const auto add = [&](double parts, double depth, double split_us) {
      const double waves = std::ceil(tiles * parts / device.sm_count);
      terms.tiles[static_cast<std::size_t>(next++)] = {waves * 2 * area / flops_per_us_of_sm, depth,
                                                       inverse_extents, split_us};
    };
    add(1, at_least_one(k), 0);
    std::int64_t parts = 1;
    while (parts < kMostSplits && tiles * static_cast<double>(2 * parts) <= device.sm_count &&
           k / (2 * parts) >= kLeastSplit)
      parts *= 2;
    if (parts > 1) {
      const double partial_sums =
          at_least_one(batch) * at_least_one(m) * at_least_one(n) * 4.0 * static_cast<double>(parts);
      add(static_cast<double>(parts), at_least_one(ceil_div(k, parts)),
          partial_sums / (device.bandwidth_GBps * 1e3));
    }
  }
  ++terms.products;
  terms.first_tile[static_cast<std::size_t>(terms.products)] = next;
}

}  // namespace

GemmShape implicit_gemm(const ConvolutionShape& s) {
  const std::int64_t groups = std::max<std::int64_t>(s.groups, 1);
  return {.batch = groups,
          .m = s.batch * s.out_height() * s.out_width(),
          .n = s.out_channels / groups,
          .k = s.in_channels / groups * s.kernel_height * s.kernel_width};
}

double attended_pairs(const AttentionShape& s) {
  const double queries = at_least_one(s.query_length), keys = at_least_one(s.key_length);
  const double window = s.window > 0 ? std::min(at_least_one(s.window), keys) : keys;
  if (!s.causal) return queries * window;
  // Query i of the last `queries` positions sees the keys up to its position, at most `window` of them.
  const double full_from = std::max(window - std::max(keys - queries, 0.0), 0.0);
  const double rising = std::min(full_from, queries);
  const double first = std::max(keys - queries, 0.0) + 1;
  return std::max(rising * (std::min(first, window) + std::min(first + rising - 1, window)) / 2 +
                      (queries - rising) * window,
                  queries);
}

// Bytes and GEMMs of the directions of C[m, n] = A[m, k] B[k, n].
void add_reference_products(ReferenceTerms& terms, const ReferenceParameters& device, const GemmShape& s,
                            Direction direction, double& elements) {
  const double operands =
      at_least_one(s.batch) * (at_least_one(s.m) * at_least_one(s.k) + at_least_one(s.k) * at_least_one(s.n) +
                               at_least_one(s.m) * at_least_one(s.n));
  if (direction == Direction::forward) add_product(terms, device, s.batch, s.m, s.n, s.k);
  if (direction == Direction::backward || direction == Direction::input_gradient)
    add_product(terms, device, s.batch, s.m, s.k, s.n);
  if (direction == Direction::backward || direction == Direction::weight_gradient)
    add_product(terms, device, s.batch, s.n, s.k, s.m);
  elements += operands * terms.products;
}

ReferenceTerms reference_terms(const Operation& operation, const ReferenceParameters& device) {
  ReferenceTerms terms;
  detail::ReferenceAmounts to{terms, device, operation.direction};
  std::visit([&](const auto& s) { detail::CostOf<decltype(s)>::reference(s, to); }, operation.shape);
  const double size = element_size(operation.dtype).value() > 0 ? element_size(operation.dtype).value() : 1.0;
  terms.bytes_us = (to.elements * size + to.extra_bytes) / (device.bandwidth_GBps * 1e3);
  terms.flops_us = to.flops / (device.peak_TFLOPs * 1e6);
  terms.units_of_sm = to.units / device.sm_count;
  terms.chain = to.chain;
  return terms;
}

double reference_time_us(const ReferenceTerms& terms, const ReferenceParameters& p) {
  double compute = terms.flops_us;
  for (int product = 0; product < terms.products; ++product) {
    double fastest = std::numeric_limits<double>::infinity();
    for (int i = terms.first_tile[static_cast<std::size_t>(product)];
         i < terms.first_tile[static_cast<std::size_t>(product) + 1]; ++i) {
      const ReferenceTerms::Tile& tile = terms.tiles[static_cast<std::size_t>(i)];
      fastest = std::min(
          fastest, tile.work_us_per_k * (tile.k + p.depth_cost) * (1 + p.tile_cost * tile.inverse_extents) +
                       tile.split_us);
    }
    compute += fastest;
  }
  // Half-way point to the sustained rate: between the fastest GEMMs of gemm_bf16_fwd.csv on H100 (0.4 ms) and
  // those at the rate of the longest (1.5 ms and more).
  constexpr double kHalfSustainedUs = 800;
  const double sustained = compute * compute / (compute * compute + kHalfSustainedUs * kHalfSustainedUs);
  compute *= 1 + (p.sustained_factor - 1) * sustained;
  const double a = p.compute_factor * compute, b = p.memory_factor * terms.bytes_us;
  const double longer = std::max(a, b), shorter = std::min(a, b);
  const double floor_us = p.floor_us + p.unit_us * terms.units_of_sm + p.chain_us * terms.chain;
  if (!(longer > 0)) return floor_us;
  if (shorter <= 0) return floor_us + longer;
  return floor_us + longer * std::exp(std::log1p(std::pow(shorter / longer, p.sharpness)) / p.sharpness);
}

double reference_time_us(const Operation& operation, const ReferenceParameters& parameters) {
  return reference_time_us(reference_terms(operation, parameters), parameters);
}

}  // namespace stepcast
