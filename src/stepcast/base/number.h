// Converts counts for arithmetic with doubles.
#pragma once

#include <cstdint>

namespace stepcast {

// Exact up to 2^53, which all counts of a job are below.
[[nodiscard]] constexpr double as_double(std::int64_t count) { return static_cast<double>(count); }

}  // namespace stepcast
