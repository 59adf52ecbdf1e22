#include "calibrate/detail/family_fit.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <vector>

#include "calibrate/detail/minimization.h"

namespace stepcast::detail {

namespace {

constexpr std::size_t kMostRows = 500;

// Constants are fitted as logarithms. Factors have a physical limit of 1: for them, the logarithm of the part above 1 is
// fitted.
struct Constant {
  double ReferenceParameters::*member;
  double low, high;  // of the logarithm
  double centre;     // where it stays without data
  double spread;     // how far data of one row may pull it
  bool matrix_only;
  bool of_rows = false;  // of kernels that work row by row
};
constexpr double kFree = 4;
const Constant kConstants[] = {
    {&ReferenceParameters::compute_factor, 0.0, 4.0, 0.25, kFree, false},
    {&ReferenceParameters::memory_factor, 0.0, 4.5, 0.25, kFree, false},
    {&ReferenceParameters::floor_us, -1.0, 9.0, 1.1, kFree, false},
    {&ReferenceParameters::sharpness, 0.3, 2.3, 1.1, 1.0, false},
    {&ReferenceParameters::tile_cost, -2.0, 4.5, 2.5, 1.5, true},
    {&ReferenceParameters::depth_cost, 0.0, 6.5, 4.2, 1.5, true},
    {&ReferenceParameters::sustained_factor, 0.0, 0.4, 0.0, 0.3, true},
    {&ReferenceParameters::unit_us, -9.0, 3.0, -6.0, kFree, false, true},
    {&ReferenceParameters::chain_us, -9.0, 1.0, -6.0, kFree, false, true},
};

// Draws at most kMostRows of n rows at random.
std::vector<std::size_t> drawn(std::size_t n, std::uint64_t seed) {
  std::vector<std::size_t> chosen(n);
  std::iota(chosen.begin(), chosen.end(), std::size_t{0});
  if (n <= kMostRows) return chosen;
  std::mt19937_64 random{seed};
  for (std::size_t i = 0; i < kMostRows; ++i) std::swap(chosen[i], chosen[i + random() % (n - i)]);
  chosen.resize(kMostRows);
  return chosen;
}

// The constants that the operations determine. Some need operations with tiles, others operations with arithmetic.
std::vector<const Constant*> constants_of(bool tiles, bool arithmetic, bool by_row) {
  std::vector<const Constant*> used;
  for (const Constant& constant : kConstants) {
    const bool of_arithmetic = constant.member == &ReferenceParameters::compute_factor ||
                               constant.member == &ReferenceParameters::sharpness;
    if ((constant.matrix_only && !tiles) || (of_arithmetic && !arithmetic) || (constant.of_rows && !by_row))
      continue;
    used.push_back(&constant);
  }
  return used;
}

// Start of the search. `least`: ln of the shortest time.
std::vector<double> start_of(const std::vector<const Constant*>& used, double memory_factor, double least) {
  std::vector<double> x;
  for (const Constant* constant : used) {
    double centre = constant->centre;
    if (constant->member == &ReferenceParameters::memory_factor) centre = memory_factor;
    if (constant->member == &ReferenceParameters::floor_us)
      centre = std::clamp(least - 0.7, constant->low, constant->high);
    x.push_back(centre);
  }
  return x;
}

}  // namespace

ReferenceParameters reference_of_device(const Device& device, DType dtype, bool matrix) {
  ReferenceParameters out;
  // Operations of a dtype missing in the data sheet still get a finite time.
  auto peak = matrix ? device.peak(dtype) : device.vector(dtype);
  if (!peak) peak = device.peak(dtype);
  if (!peak) peak = device.vector(dtype);
  if (!peak) peak = device.peak(DType::fp32);
  if (!peak) peak = device.vector(DType::fp32);
  out.peak_TFLOPs = peak ? peak->value() / 1e12 : 10;
  out.bandwidth_GBps = std::max(device.memory_bandwidth.value() / 1e9, 1.0);
  out.sm_count = device.sm_count ? static_cast<double>(*device.sm_count) : 80;
  if (device.kernel_floor) out.floor_us = std::max(device.kernel_floor->value(), 0.5);
  return out;
}

ReferenceParameters fit_reference(std::span<const Operation* const> operations,
                                  std::span<const double> log_times, const ReferenceParameters& start,
                                  std::uint64_t seed) {
  const std::vector<std::size_t> chosen = drawn(operations.size(), seed);
  std::vector<ReferenceTerms> terms;
  terms.reserve(chosen.size());
  bool tiles = false, arithmetic = false, by_row = false;
  double least = 1e300;
  for (const std::size_t i : chosen) {
    terms.push_back(reference_terms(*operations[i], start));
    tiles = tiles || terms.back().products > 0;
    arithmetic = arithmetic || tiles || terms.back().flops_us > 0;
    by_row = by_row || terms.back().units_of_sm > 0;
    least = std::min(least, log_times[i]);
  }
  if (terms.empty()) return start;

  const std::vector<const Constant*> used = constants_of(tiles, arithmetic, by_row);
  const auto parameters = [&](std::span<const double> x) {
    ReferenceParameters p = start;
    for (std::size_t i = 0; i < used.size(); ++i) p.*used[i]->member = std::exp(x[i]);
    return p;
  };
  SimplexSearch search;
  for (const Constant* constant : used) {
    search.low.push_back(constant->low);
    search.high.push_back(constant->high);
    search.step.push_back(std::min(0.4, (constant->high - constant->low) / 4));
  }
  const double n = static_cast<double>(terms.size());
  search.value = [&](std::span<const double> x) {
    const ReferenceParameters p = parameters(x);
    double sum = 0;
    for (std::size_t i = 0; i < terms.size(); ++i) {
      const double residual = log_times[chosen[i]] - std::log(reference_time_us(terms[i], p));
      sum += std::sqrt(residual * residual + 1e-4);
    }
    for (std::size_t i = 0; i < used.size(); ++i) {
      const double away = (x[i] - used[i]->centre) / used[i]->spread;
      sum += 0.05 * away * away;
    }
    return sum / n;
  };
  search.max_evaluations = 260;
  std::vector<double> best;
  double best_value = 1e300;
  // Two starts: unfused operations take many passes over memory, and the search does not find its way from one case to the
  // other.
  for (const double memory : {0.25, 2.0}) {
    if (tiles && memory > 1) break;  // GEMMs are a single kernel
    std::vector<double> x = start_of(used, memory, least);
    const double value = search.minimise(x);
    if (value < best_value) {
      best_value = value;
      best = x;
    }
  }
  return parameters(best);
}

}  // namespace stepcast::detail
