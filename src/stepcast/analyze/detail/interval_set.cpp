#include "stepcast/analyze/detail/interval_set.h"

#include <algorithm>

namespace stepcast::detail {

// The constructor establishes the invariant that all operations rely on: intervals are sorted, disjoint and
// have a length above 0. Sorting is skipped for sorted input, which is the usual case.
IntervalSet::IntervalSet(std::vector<Interval> intervals) {
  std::erase_if(intervals, [](const Interval& i) { return i.length_us() <= 0; });
  const auto by_start = [](const Interval& a, const Interval& b) { return a.start_us < b.start_us; };
  if (!std::is_sorted(intervals.begin(), intervals.end(), by_start))
    std::sort(intervals.begin(), intervals.end(), by_start);
  // Merge intervals that overlap or touch.
  for (const Interval& next : intervals)
    if (!intervals_.empty() && next.start_us <= intervals_.back().end_us)
      intervals_.back().end_us = std::max(intervals_.back().end_us, next.end_us);
    else
      intervals_.push_back(next);
}

double IntervalSet::total_us() const {
  double total = 0;
  for (const Interval& i : intervals_) total += i.length_us();
  return total;
}

double IntervalSet::covered_us(Interval interval) const {
  double covered = 0;
  auto i = std::lower_bound(intervals_.begin(), intervals_.end(), interval.start_us,
                            [](const Interval& a, double start) { return a.end_us <= start; });
  for (; i != intervals_.end() && i->start_us < interval.end_us; ++i)
    covered += std::max(0.0, clip(*i, interval).length_us());
  return covered;
}

IntervalSet IntervalSet::minus(const IntervalSet& other) const {
  IntervalSet left;
  // `cut` never moves back: it is the first interval of `other` that can overlap the current one.
  auto cut = other.intervals_.begin();
  for (Interval rest : intervals_) {
    while (cut != other.intervals_.end() && cut->end_us <= rest.start_us) ++cut;
    for (auto c = cut; c != other.intervals_.end() && c->start_us < rest.end_us; ++c) {
      if (c->start_us > rest.start_us) left.intervals_.push_back({rest.start_us, c->start_us});
      rest.start_us = std::max(rest.start_us, c->end_us);
    }
    if (rest.length_us() > 0) left.intervals_.push_back(rest);
  }
  return left;
}

}  // namespace stepcast::detail
