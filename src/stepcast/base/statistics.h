// Medians and quantiles. Several definitions are in use, so each function names its own.
#pragma once

#include <span>
#include <vector>

namespace stepcast {

// All functions return 0 if there are no values.

// The middle value; for an even number of values the mean of the two middle ones. O(n).
[[nodiscard]] double median(std::vector<double> values);
// The middle value; for an even number of values the larger of the two middle ones. O(n).
[[nodiscard]] double upper_median(std::vector<double> values);

// Linear interpolation between order statistics: the minimum at share 0, the maximum at share 1 (type 7 of
// Hyndman and Fan 1996, the default of R and NumPy).
[[nodiscard]] double quantile(std::vector<double> values, double share);
// The smallest value that is not exceeded by at least this share of the values (type 1, nearest rank).
// `sorted` must be ascending.
[[nodiscard]] double nearest_rank_quantile(std::span<const double> sorted, double share);
// The value that `share` of all future values are expected to lie below, given a sample of n: rank share (n +
// 1), interpolated linearly (type 6), as in conformal prediction. `sorted` must be ascending.
[[nodiscard]] double future_quantile(std::span<const double> sorted, double share);

}  // namespace stepcast
