#include "stepcast/cost/detail/embedding_lookup.h"

#include <algorithm>
#include <cmath>

namespace stepcast::detail {
namespace {

// All constants are those of the published heuristic.
constexpr double kSector = 32;       // bytes of a memory sector
constexpr double kTableOffset = 32;  // bytes per bag
constexpr double kBagOffsets = 64;   // bytes per bag
constexpr double kIndexBytes = 4;
constexpr double kL2Share = 0.9;      // share of L2 that contains rows
constexpr double kWarpColumns = 256;  // columns of rows that the warps of one SM process

// The published memory curve of A100 (table of measured peaks in the methods): log2 m1, log2 m2, GB/s, us and
// the four numbers of the sigmoid; 1391.1 of 1555 GB/s nominal.
constexpr double kLog2M1 = 14, kLog2M2 = 29, kStartupUs = 6.450;
constexpr double kA = 2.2096, kX0 = 20.352, kK = 0.6253, kB = 0.9324;
constexpr double kPlateauGBps = 1391.1, kReachedShare = 1391.1 / 1555;

// Bytes rounded up to whole sectors.
double sectors(double bytes) { return std::ceil(bytes / kSector) * kSector; }

// Sizes of an operator: counts, and bytes per bag.
struct Amounts {
  double tables, bags, pooling, rows, lookups, indices, weights, output;
};
Amounts amounts_of(const LookupShape& s, double element) {
  Amounts a{};
  a.tables = static_cast<double>(s.tables);
  a.bags = static_cast<double>(s.bags);
  a.pooling = s.pooling;
  a.rows = std::max(1.0, static_cast<double>(s.rows));
  a.lookups = a.bags * a.pooling;
  const double row = sectors(element * static_cast<double>(s.dim));
  a.indices = sectors(kIndexBytes * a.pooling);
  a.weights = a.pooling * row;
  a.output = row;
  return a;
}

// Fills the members on caching: rows of one table that fit into L2 together with the other tables in flight,
// and distinct rows of a batch.
void fill_cache(LookupTraffic& traffic, const LookupShape& s, const Amounts& a, double element,
                const LookupDevice& device) {
  const auto dim = std::max(1.0, static_cast<double>(s.dim));
  traffic.concurrent_warps = device.sm_count * std::max(std::floor(kWarpColumns / dim), 1.0);
  traffic.tables_in_flight = std::ceil(traffic.concurrent_warps / std::max(a.bags, 1.0));
  const double fitting = std::floor(kL2Share * device.l2_bytes / (traffic.tables_in_flight * element * dim));
  traffic.cached_rows = std::min({fitting, a.rows, a.lookups});
  // E (1 - Pr[Binomial(BL, 1/E) = 0])
  const double untouched = a.rows > 1 ? std::exp(a.lookups * std::log1p(-1 / a.rows)) : 0;
  traffic.distinct_rows =
      s.distinct_fraction >= 0 ? std::min(s.distinct_fraction * a.lookups, a.rows) : a.rows * (1 - untouched);
}

// The published middle region has no start-up term; the time is kept from falling below it.
double memory_us(const LookupDevice& device, double bytes) {
  const double time = device.memory.time(Bytes{bytes}).value();
  return std::max(time, device.memory.startup_us);
}

// Factor for narrow rows, which leave part of a warp idle.
double width_factor(double dim) { return dim > 64 ? 1 : dim > 32 ? 1.1 : 1.55; }

}  // namespace

LookupDevice lookup_device(const DeviceFigures& device) {
  LookupDevice out;
  out.sm_count = device.sm_count;
  out.l2_bytes = device.l2_bytes;
  out.l2_per_us = device.l2.per_us;
  out.vector_per_us = device.vector.per_us;
  const double plateau_GBps = device.memory.per_us * 1e-3 * kReachedShare;
  out.memory = {kLog2M1, kLog2M2, plateau_GBps, kStartupUs,
                kA,      kX0,     kK,           kB + std::log10(plateau_GBps / kPlateauGBps),
                1};
  return out;
}

LookupTraffic lookup_forward(const LookupShape& s, double element, const LookupDevice& device) {
  const Amounts a = amounts_of(s, element);
  LookupTraffic t;
  if (!(a.lookups > 0)) return t;
  fill_cache(t, s, a, element, device);
  const double x = t.cached_rows;
  t.hit_rate = t.distinct_rows > x ? 1 - (x + (a.lookups - x) * (a.rows - x) / a.rows) / a.lookups
                                   : 1 - t.distinct_rows / a.lookups;
  t.hit_rate = std::clamp(t.hit_rate, 0.0, 1.0);
  const double bags = a.tables * a.bags;
  t.l2_bytes = bags * t.hit_rate * a.weights;
  t.memory_bytes =
      bags * (a.indices + kTableOffset + kBagOffsets + a.output) + bags * (1 - t.hit_rate) * a.weights;
  return t;
}

LookupTraffic lookup_backward(const LookupShape& s, double element, const LookupDevice& device) {
  const Amounts a = amounts_of(s, element);
  LookupTraffic t;
  if (!(a.lookups > 0)) return t;
  fill_cache(t, s, a, element, device);
  // Probability that all rows of a bag are cached: prod over i < L of (X - i) / (E - i).
  double whole_bag = 1;
  const double bag = std::min(std::floor(a.pooling), 1e4);
  for (double i = 0; i < bag && whole_bag > 1e-12; ++i)
    whole_bag *= std::max(t.cached_rows - i, 0.0) / std::max(a.rows - i, 1.0);
  t.hit_rate = std::clamp(whole_bag, 0.0, 1.0);
  const double bags = a.tables * a.bags;
  // Rows are read and written back.
  t.l2_bytes = bags * t.hit_rate * 2 * a.weights;
  t.memory_bytes =
      bags * (kTableOffset + kBagOffsets + a.indices + a.output) + bags * (1 - t.hit_rate) * 2 * a.weights;
  t.multiply_adds = bags * a.pooling * 4 * std::floor(static_cast<double>(s.dim) / 4);
  return t;
}

double lookup_us(const LookupShape& s, double element, Direction direction, const LookupDevice& device) {
  if (direction == Direction::forward) {
    const LookupTraffic t = lookup_forward(s, element, device);
    return std::max(memory_us(device, t.memory_bytes), t.l2_bytes / device.l2_per_us) *
           width_factor(static_cast<double>(s.dim));
  }
  const LookupTraffic t = lookup_backward(s, element, device);
  return std::max({memory_us(device, t.memory_bytes), t.l2_bytes / device.l2_per_us,
                   t.multiply_adds / device.vector_per_us});
}

}  // namespace stepcast::detail
