// Binary multiples of a byte.
#pragma once

namespace stepcast {

inline constexpr double kMiB = 1048576.0;
inline constexpr double kGiB = 1073741824.0;

}  // namespace stepcast
