// Draws a fitted curve and its measurements with characters.
#pragma once

#include <cstddef>
#include <string>

#include "calibrate/collective_fit.h"

namespace stepcast {

// Bus bandwidth over message size, both logarithmic: 'o' measured, '.' fitted, '@' both.
//
//   GB/s
//   231 |                                   ..o@@@@
//       |                              .@@@
//    ...
[[nodiscard]] std::string bandwidth_plot(const CollectiveFit& fit, std::size_t width = 64,
                                         std::size_t height = 12);

}  // namespace stepcast
