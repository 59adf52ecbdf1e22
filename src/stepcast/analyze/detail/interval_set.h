// A set of moments as sorted, disjoint intervals.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "stepcast/base/interval.h"

namespace stepcast::detail {

class IntervalSet {
 public:
  IntervalSet() = default;
  // Any order, overlaps allowed; intervals without length are dropped.
  explicit IntervalSet(std::vector<Interval> intervals);

  [[nodiscard]] std::span<const Interval> intervals() const { return intervals_; }
  [[nodiscard]] double total_us() const;
  // Length of the part of `interval` that lies in the set.
  [[nodiscard]] double covered_us(Interval interval) const;
  [[nodiscard]] IntervalSet minus(const IntervalSet& other) const;

 private:
  std::vector<Interval> intervals_;
};

// The part of `interval` inside `window`; empty intervals have no positive length.
[[nodiscard]] inline Interval clip(Interval interval, Interval window) {
  return {std::max(interval.start_us, window.start_us), std::min(interval.end_us, window.end_us)};
}

}  // namespace stepcast::detail
