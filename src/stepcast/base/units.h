// Binary multiples of a byte, and factors for displayed times.
#pragma once

namespace stepcast {

inline constexpr double kMiB = 1048576.0;
inline constexpr double kGiB = 1073741824.0;

inline constexpr double kMsPerUs = 1e-3;  // converts Microseconds::value() to milliseconds

}  // namespace stepcast
