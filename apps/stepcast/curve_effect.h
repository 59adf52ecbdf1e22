// The effect of newly measured collective curves on forecasts.
#pragma once

#include <string>
#include <vector>

#include "stepcast/platform/platform.h"

namespace stepcast::cli {

struct CurveEffects {
  // The tried forecast that changes most, with the step before and after; empty if none changes.
  std::string largest;
  // Curves without effect: "all_reduce on 18 x 4 GPUs: why none of the tried forecasts uses it".
  std::vector<std::string> unused;
};

// Forecasts steps with `before` and `after` on the number of GPUs of each new curve, in layouts that use its
// collective: tensor, data, pipeline and expert parallelism, with and without sharding.
[[nodiscard]] CurveEffects effects_of_curves(const Platform& before, const Platform& after);

}  // namespace stepcast::cli
