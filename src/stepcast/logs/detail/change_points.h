// Detects where a series changes its level for good, such as a job that runs slower after a restart on other
// nodes.
#pragma once

#include <cstddef>
#include <vector>

namespace stepcast::detail {

// Returns the ascending indices of the first value after each change, at most 16. Each side of a change
// has at least ten values. The medians differ by at least 5 % and by more than the spread, and a straight
// line (drift) does not explain the values as well. `values` are in the order of time, in any unit.
[[nodiscard]] std::vector<std::size_t> changes_of(const std::vector<double>& values);

}  // namespace stepcast::detail
