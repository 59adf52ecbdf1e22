// A set of times, stored as sorted and disjoint intervals.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "stepcast/base/interval.h"

namespace stepcast::detail {

// Immutable. Operations are linear in the number of intervals, except covered_us().
class IntervalSet {
 public:
  IntervalSet() = default;
  // `intervals` may be in any order and may overlap. Intervals without length are dropped.
  explicit IntervalSet(std::vector<Interval> intervals);

  [[nodiscard]] std::span<const Interval> intervals() const { return intervals_; }
  // The total length in microseconds.
  [[nodiscard]] double total_us() const;
  // The length of the part of `interval` that lies in the set. Binary search, then linear in the covered
  // intervals.
  [[nodiscard]] double covered_us(Interval interval) const;
  // The times in this set that are not in `other`.
  [[nodiscard]] IntervalSet minus(const IntervalSet& other) const;

 private:
  std::vector<Interval> intervals_;
};

// The part of `interval` inside `window`. If they do not overlap, the result has no positive length.
[[nodiscard]] inline Interval clip(Interval interval, Interval window) {
  return {std::max(interval.start_us, window.start_us), std::min(interval.end_us, window.end_us)};
}

}  // namespace stepcast::detail
