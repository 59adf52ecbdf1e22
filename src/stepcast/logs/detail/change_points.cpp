// Finds lasting changes of level in a series of step times. A series is split recursively: each part is
// searched for the best single split and for the best inner stretch, and each candidate must pass the test of
// is_change(). Outliers are clipped first, because single stalls would otherwise dominate sums of squares.
#include "stepcast/logs/detail/change_points.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include "stepcast/base/statistics.h"

namespace stepcast::detail {
namespace {

// Fewest values on either side of a change.
constexpr std::size_t kLeast = 10;
// A change is at least this share of the smaller of the two medians.
constexpr double kShare = 0.05;
// A change is at least this many standard errors of the difference of two medians.
constexpr double kStandardErrors = 8;
// Scales a median absolute deviation to a standard deviation, for a normal distribution.
constexpr double kMadToDeviation = 1.4826;

double median_of(std::span<const double> values) { return median({values.begin(), values.end()}); }

// The index that splits the values into two parts with the least sum of squared deviations from their means,
// with at least kLeast values on each side. O(n): minimising this sum is maximising the sum of squared part
// sums over part lengths.
std::size_t best_split(std::span<const double> values) {
  std::vector<double> sums{0};
  for (const double v : values) sums.push_back(sums.back() + v);
  std::size_t best = kLeast;
  double most = -1;
  for (std::size_t k = kLeast; k + kLeast <= values.size(); ++k) {
    const double left = sums[k], right = sums.back() - sums[k];
    const double score =
        left * left / static_cast<double>(k) + right * right / static_cast<double>(values.size() - k);
    if (score > most) {
      most = score;
      best = k;
    }
  }
  return best;
}

// Mean absolute distance of the values from their least-squares line. It measures how well a slow drift
// explains the series.
double distance_from_line(std::span<const double> values) {
  const double n = static_cast<double>(values.size());
  double sum = 0, moment = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    sum += values[i];
    moment += (static_cast<double>(i) - (n - 1) / 2) * values[i];
  }
  const double slope = moment / (n * (n * n - 1) / 12);
  double distance = 0;
  for (std::size_t i = 0; i < values.size(); ++i)
    distance += std::abs(values[i] - sum / n - slope * (static_cast<double>(i) - (n - 1) / 2));
  return distance / n;
}

// The stretch [from, to) with a mean that differs most from the mean of all values, by the between-group sum
// of squares. O(n^2) in the number of candidates, so with more than 256 values only multiples of n/256 are
// tried as ends. Returns {0, 0} if no stretch is long enough.
std::pair<std::size_t, std::size_t> best_stretch(std::span<const double> values) {
  constexpr std::size_t kMostBlocks = 256;
  const std::size_t n = values.size(), block = (n + kMostBlocks - 1) / kMostBlocks;
  std::vector<double> sums{0};
  for (const double v : values) sums.push_back(sums.back() + v);
  const double mean = sums.back() / static_cast<double>(n);
  std::pair<std::size_t, std::size_t> best{0, 0};
  double most = 0;
  for (std::size_t from = block; from + kLeast < n; from += block) {
    for (std::size_t to = from + std::max(block, (kLeast + block - 1) / block * block); to + kLeast <= n;
         to += block) {
      const double length = static_cast<double>(to - from);
      const double beyond = sums[to] - sums[from] - length * mean;
      const double score = beyond * beyond / length / (static_cast<double>(n) - length);
      if (score <= most) continue;
      most = score;
      best = {from, to};
    }
  }
  return best;
}

// Whether the values in [from, to) have a different level than those around them. The medians must differ by
// at least 5 %, by the spread of the values, and by 8 standard errors. Two levels must also fit the values
// clearly better (30 %) than a straight line does, so that a drift is not reported as a step.
bool is_change(std::span<const double> values, std::size_t from, std::size_t to) {
  constexpr double kLow = 0.5, kHigh = 2;
  const double middle = median_of(values), n = static_cast<double>(values.size()),
               inside = static_cast<double>(to - from);
  std::vector<double> within(values.begin() + static_cast<std::ptrdiff_t>(from),
                             values.begin() + static_cast<std::ptrdiff_t>(to)),
      around(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(from));
  around.insert(around.end(), values.begin() + static_cast<std::ptrdiff_t>(to), values.end());
  const double own = median_of(within), other = median_of(around);
  std::vector<double> deviations, clipped;
  double distance = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double level = i >= from && i < to ? own : other;
    clipped.push_back(std::clamp(values[i], kLow * middle, kHigh * middle));
    deviations.push_back(std::abs(values[i] - level));
    distance += std::abs(clipped.back() - std::clamp(level, kLow * middle, kHigh * middle));
  }
  const double spread = kMadToDeviation * median(std::move(deviations));
  constexpr double kOfMedian = 1.25;  // standard error of a median: 1.25 standard deviations over sqrt(n)
  const double error = kOfMedian * spread * std::sqrt(1 / inside + 1 / (n - inside));
  const double change = std::abs(own - other);
  constexpr double kBetter = 0.7;
  return change >= kShare * std::min(own, other) && change >= spread && change >= kStandardErrors * error &&
         distance / n < kBetter * distance_from_line(clipped);
}

// Where the values change once: {split} for one change of level, {from, to} for a stretch with a different
// level, empty for neither. A single split is preferred, as it is the simpler explanation.
std::vector<std::size_t> change_of(std::span<const double> values) {
  if (values.size() < 2 * kLeast) return {};
  const double middle = median_of(values);
  if (middle <= 0) return {};
  // Clip to half and twice the median: single stalls are not a change of level.
  constexpr double kLow = 0.5, kHigh = 2;
  std::vector<double> clipped;
  for (const double v : values) clipped.push_back(std::clamp(v, kLow * middle, kHigh * middle));
  const std::size_t split = best_split(clipped);
  if (is_change(values, split, values.size())) return {split};
  const auto [from, to] = best_stretch(clipped);
  if (to > from && is_change(values, from, to)) return {from, to};
  return {};
}

}  // namespace

std::vector<std::size_t> changes_of(const std::vector<double>& values) {
  constexpr std::size_t kMost = 15;
  std::vector<std::size_t> ends{0, values.size()};
  // Parts without a change are skipped; a part with a change is searched again after the split.
  for (std::size_t at = 0; at + 1 < ends.size() && ends.size() < kMost + 2;) {
    const std::size_t from = ends[at], to = ends[at + 1];
    std::vector<std::size_t> changes = change_of(std::span{values}.subspan(from, to - from));
    for (std::size_t& change : changes) change += from;
    ends.insert(ends.begin() + static_cast<std::ptrdiff_t>(at) + 1, changes.begin(), changes.end());
    if (changes.empty()) ++at;
  }
  return {ends.begin() + 1, ends.end() - 1};
}

}  // namespace stepcast::detail
