#include "stepcast/cost/embedding_lookup.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "stepcast/base/names.h"
#include "stepcast/cost/learned_lookup.h"

// Closed form of embedding lookups; learned corrections are applied at the end of cost().

namespace stepcast {
namespace {

constexpr double kStreamShare = 0.82;       // of the memory bandwidth, for outputs and indices
constexpr double kRowsCacheShare = 0.9;     // of the last-level cache that contains rows
constexpr double kWarpsPerSm = 32;          // resident warps of the forward kernel
constexpr double kIndexBytes = 8;           // 64-bit indices and offsets
constexpr double kNarrowestRowBytes = 128;  // bytes; a lookup of a narrower row costs as much
constexpr double kWarpColumns = 128;        // columns that a warp of the backward processes at once
// Bytes of the backward per lookup: linearised index, four passes of a radix sort over index and position,
// ends of the segments.
constexpr double kLinearizeBytes = 20, kSortBytes = 128, kSegmentBytes = 8;
// Kernels that a backward without lookups still launches; each takes the kernel floor.
constexpr double kEmptyBackwardKernels = 12;
constexpr double kForwardRampUs = 6.45;  // until the memory streams at full rate
constexpr double kRowLatencyUs = 0.25;   // per row of one bag, with four rows in flight
// Time per gradient of one row that one block sums up: 32 warps with two in flight, 0.6 us latency.
constexpr double kHotRowUs = 0.01;
// Half-widths in ln: forward, backward, then what is added (as independent errors) for another architecture
// and for kernels of 100 us and less; the latter fades out until 1 ms. Assumed.
constexpr double kForwardBand = 0.18, kBackwardBand = 0.25, kOtherArchitectureBand = 0.15, kShortBand = 0.3,
                 kAssumedLookupBand = 0.6;
constexpr double kShortUs = 100, kLongUs = 1000;
constexpr std::string_view kMeasuredArchitecture = "ampere";

// Columns that a warp processes for rows of `dim` columns: the next power of two from `fewest` on, or `dim`
// itself from 128 on.
double lanes_columns(double dim, double fewest) {
  if (dim >= kWarpColumns) return dim;
  double columns = fewest;
  while (columns < dim) columns *= 2;
  return columns;
}

}  // namespace

std::string_view to_string(TablePlacement placement) {
  return name_of<TablePlacement::uvm_cached>(placement, {"hbm", "uvm", "uvm_cached"});
}

LookupCost& LookupCost::operator+=(const LookupCost& other) {
  forward_us += other.forward_us;
  backward_us += other.backward_us;
  sort_us += other.sort_us;
  missed_us += other.missed_us;
  gather_us += other.gather_us;
  longest_bag_us = std::max(longest_bag_us, other.longest_bag_us);
  hottest_row_us = std::max(hottest_row_us, other.hottest_row_us);
  lookups += other.lookups;
  distinct_rows += other.distinct_rows;
  hits += other.hits;
  gathered_bytes += other.gathered_bytes;
  return *this;
}

LookupModel::LookupModel(const Device& device, const LookupConstants& constants,
                         std::shared_ptr<const LearnedLookups> learned)
    : constants_(constants), learned_(std::move(learned)) {
  const DeviceFigures figures = figures_of(device);
  stream_per_us_ = figures.memory.per_us * kStreamShare;
  memory_per_us_ = figures.memory.per_us * constants.memory_share;
  backward_per_us_ = figures.memory.per_us * constants.backward_memory_share;
  gather_per_us_ = figures.memory.per_us * constants.gather_share;
  host_per_us_ = figures.host_link.per_us * constants.memory_share;
  cache_bytes_ = kRowsCacheShare * figures.l2_bytes;
  resident_warps_ = figures.sm_count * kWarpsPerSm;
  floor_us_ = figures.kernel_floor_us;
  assumed_ = figures.memory.assumed || figures.l2_bytes <= 0;
  measured_architecture_ = device.architecture == kMeasuredArchitecture;
}

LookupCounts LookupModel::counts(const TableLookup& t) const {
  LookupCounts counts{.lookups = t.bags * t.pooling};
  if (counts.lookups <= 0) return counts;
  // Bags are processed table after table, so several tables are in flight and share the cache where batches
  // are small.
  const double tables_in_flight = std::max(1.0, std::ceil(resident_warps_ / std::max(t.bags, 1.0)));
  const double cached_rows = cache_bytes_ / tables_in_flight / (t.dim * t.weight_bytes);
  const AccessPattern fallback = t.pattern == nullptr ? AccessPattern::uniform(t.rows) : AccessPattern{};
  const AccessPattern& pattern = t.pattern == nullptr ? fallback : *t.pattern;
  counts.distinct_rows = pattern.distinct_rows(counts.lookups);
  counts.hits = pattern.hits(counts.lookups, cached_rows);
  counts.hottest = pattern.hottest(counts.lookups);
  if (t.placement == TablePlacement::uvm_cached)
    counts.cached_hits = pattern.hits(counts.lookups, t.cached_share * t.rows);
  if (learned_ != nullptr && learned_->holds(t)) counts.reuse = pattern.reuse_of_rows(counts.lookups);
  return counts;
}

LookupCost LookupModel::cost(const TableLookup& t, const LookupCounts& counts) const {
  LookupCost cost;
  cost.lookups = counts.lookups;
  cost.distinct_rows = counts.distinct_rows;
  cost.hits = constants_.keeps_rows ? counts.hits : 0;
  const double row = t.dim * t.weight_bytes;
  const double output = t.bags * t.dim * t.gradient_bytes;
  const double indices =
      kIndexBytes * (cost.lookups + (t.one_to_one ? 0 : t.bags)) + (t.weighted ? 4 * cost.lookups : 0);
  cost.gathered_bytes = cost.lookups * t.dim * t.weight_bytes;
  // Also for tables without lookups: the kernels that the corrections were learned from had such tables.
  const auto correct = [&] {
    if (learned_ == nullptr || !learned_->holds(t)) return;
    const LookupFeatures features = lookup_features(t.bags, t.rows, t.pooling, t.dim, counts.reuse);
    if (learned_->forward) learned_->forward->correct(features, cost);
    if (learned_->backward) learned_->backward->correct(features, cost);
  };
  if (cost.lookups <= 0) {
    cost.forward_us = cost.missed_us = (output + indices) / stream_per_us_;
    correct();
    return cost;
  }
  const double misses = cost.lookups - cost.hits;
  const double moved_row = std::max(row, kNarrowestRowBytes);

  double missed_us = misses * moved_row / memory_per_us_;
  double update_per_us = backward_per_us_;
  if (t.placement != TablePlacement::hbm) {
    const double on_host =
        t.placement == TablePlacement::uvm ? misses : cost.lookups - std::max(cost.hits, counts.cached_hits);
    missed_us =
        (misses - std::min(misses, on_host)) * moved_row / memory_per_us_ + on_host * row / host_per_us_;
    update_per_us = t.placement == TablePlacement::uvm ? host_per_us_ : backward_per_us_;
  }
  const double hit_us = cost.hits * moved_row / gather_per_us_;
  const double streamed_us = (output + indices) / stream_per_us_;
  cost.missed_us = missed_us + streamed_us;
  cost.gather_us = cost.lookups * moved_row / gather_per_us_;
  cost.forward_us = constants_.misses_beside_hits ? std::max(cost.gather_us, cost.missed_us)
                                                  : hit_us + missed_us + streamed_us;
  cost.longest_bag_us = t.longest_bag * kRowLatencyUs;

  cost.sort_us = cost.lookups * (kLinearizeBytes + kSortBytes + kSegmentBytes) / backward_per_us_;
  // A warp sums up gradient after gradient and waits for each, so a cached gradient is not faster.
  const double gradient_row = lanes_columns(t.dim, constants_.fewest_columns) * t.gradient_bytes;
  double update = 2 * (row + t.state_bytes_per_row + t.dim * t.state_bytes_per_element);
  double gradients_us =
      cost.lookups * gradient_row / backward_per_us_ + cost.distinct_rows * update / update_per_us;
  if (t.weighted) {
    // Gradients of the weights: dot product of row and gradient for each lookup.
    gradients_us += cost.lookups * t.dim * (t.weight_bytes + t.gradient_bytes) / gather_per_us_;
  }
  cost.backward_us = cost.sort_us + gradients_us;
  cost.hottest_row_us = std::min(counts.hottest, constants_.most_of_one_block) * kHotRowUs;
  correct();
  return cost;
}

double LookupModel::forward_us(const LookupCost& tables) const {
  if (tables.forward_us <= 0) return 0;
  if (learned_ != nullptr && learned_->forward) return learned_->forward->kernel_us(tables);
  return floor_us_ + kForwardRampUs + std::max(tables.forward_us, tables.longest_bag_us);
}

double LookupModel::backward_us(const LookupCost& tables) const {
  // The kernels of the backward are launched even when no table has lookups.
  if (tables.lookups <= 0) return tables.forward_us > 0 ? kEmptyBackwardKernels * floor_us_ : 0;
  if (learned_ != nullptr && learned_->backward) return learned_->backward->kernel_us(tables);
  return constants_.backward_start_us + tables.backward_us + tables.hottest_row_us;
}

Estimate LookupModel::estimate(double time_us, bool in_host_memory, Direction direction) const {
  const bool guess = assumed_ || in_host_memory;
  const LearnedLookup* learned = nullptr;
  if (learned_ != nullptr) {
    const auto& way = direction == Direction::forward ? learned_->forward : learned_->backward;
    if (way) learned = &*way;
  }
  if (learned != nullptr && !guess) {
    return {Microseconds{time_us}, Microseconds{time_us * std::exp(learned->parameters().log_p10)},
            Microseconds{time_us * std::exp(learned->parameters().log_p90)}, EstimateSource::fitted};
  }
  const double shortness =
      std::clamp(std::log(kLongUs / std::max(time_us, 1e-3)) / std::log(kLongUs / kShortUs), 0.0, 1.0);
  const double width =
      std::hypot(direction == Direction::forward ? kForwardBand : kBackwardBand,
                 measured_architecture_ ? 0 : kOtherArchitectureBand, shortness * kShortBand);
  const double band = std::exp(guess ? kAssumedLookupBand : width);
  return {Microseconds{time_us}, Microseconds{time_us / band}, Microseconds{time_us * band},
          guess ? EstimateSource::assumed : EstimateSource::analytic};
}

}  // namespace stepcast
