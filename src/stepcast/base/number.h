// Counts in arithmetic of doubles.
#pragma once

#include <cstdint>

namespace stepcast {

// Exact below 2^53, as all counts of a job are.
[[nodiscard]] constexpr double as_double(std::int64_t count) { return static_cast<double>(count); }

}  // namespace stepcast
