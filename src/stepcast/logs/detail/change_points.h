// Where a series changes its level for good.
#pragma once

#include <cstddef>
#include <vector>

namespace stepcast::detail {

// Ascending indices of the first value behind each change, at most 15. A change has at least ten values and 5 % between the
// medians of its two sides, more than their spread, and is not explained as well by a drift (a straight line).
[[nodiscard]] std::vector<std::size_t> changes_of(const std::vector<double>& values);

}  // namespace stepcast::detail
