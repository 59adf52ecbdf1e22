// Binary multiples of a byte, and times as they are shown.
#pragma once

namespace stepcast {

inline constexpr double kMiB = 1048576.0;
inline constexpr double kGiB = 1073741824.0;

inline constexpr double kMsPerUs = 1e-3;  // Microseconds::value() to milliseconds

}  // namespace stepcast
