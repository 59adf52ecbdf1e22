// What newly measured curves of collectives change in forecasts.
#pragma once

#include <string>
#include <vector>

#include "stepcast/platform/platform.h"

namespace stepcast::cli {

struct CurveEffects {
  // The question whose step changes most, with the step before and after; empty: none of those that were tried changes.
  std::string largest;
  // "all_reduce on 18 x 4 GPUs: why no forecast that was tried uses it".
  std::vector<std::string> unused;
};

// Asks `before` and `after` for steps of as many GPUs as each curve joins that `after` alone has, in the layouts that run its
// collective: tensor, data and pipeline parallelism, sharded and not, and experts.
[[nodiscard]] CurveEffects effects_of_curves(const Platform& before, const Platform& after);

}  // namespace stepcast::cli
