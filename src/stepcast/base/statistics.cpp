#include "stepcast/base/statistics.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace stepcast {
namespace {

// The value at a fractional rank, which starts at 0, interpolated linearly.
double at_rank(std::span<const double> sorted, double position) {
  const auto below = static_cast<std::size_t>(position);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (position - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

}  // namespace

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return 0.5 * (*middle + *std::max_element(values.begin(), middle));
}

double upper_median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

double quantile(std::vector<double> values, double share) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return at_rank(values, std::clamp(share, 0.0, 1.0) * static_cast<double>(values.size() - 1));
}

double nearest_rank_quantile(std::span<const double> sorted, double share) {
  if (sorted.empty()) return 0;
  const double position = std::ceil(share * static_cast<double>(sorted.size()));
  const std::size_t index = position < 1 ? 0 : static_cast<std::size_t>(position) - 1;
  return sorted[std::min(index, sorted.size() - 1)];
}

double future_quantile(std::span<const double> sorted, double share) {
  if (sorted.empty()) return 0;
  const double n = static_cast<double>(sorted.size());
  return at_rank(sorted, std::clamp(share * (n + 1) - 1, 0.0, n - 1));
}

}  // namespace stepcast
