// Medians and quantiles. There are several definitions in use; here each has a name.
#pragma once

#include <span>
#include <vector>

namespace stepcast {

// All are 0 for no values.

// The middle value; the mean of the two in the middle of an even number.
[[nodiscard]] double median(std::vector<double> values);
// The middle value; the larger of the two in the middle of an even number.
[[nodiscard]] double upper_median(std::vector<double> values);

// Linear between the order statistics, the least at share 0 and the largest at share 1 (type 7 of Hyndman and
// Fan 1996, the default of R and NumPy).
[[nodiscard]] double quantile(std::vector<double> values, double share);
// The least value that at least this share of all does not exceed (type 1, nearest rank). `sorted` ascends.
[[nodiscard]] double nearest_rank_quantile(std::span<const double> sorted, double share);
// The value that a share of all future ones lies below, from a sample of n: at rank share (n + 1), linear
// between ranks (type 6), as conformal prediction counts. `sorted` ascends.
[[nodiscard]] double future_quantile(std::span<const double> sorted, double share);

}  // namespace stepcast
