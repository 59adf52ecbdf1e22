// Fits StartupForm (cost/collective_curve.h) to points.
#pragma once

#include <span>

#include "stepcast/cost/collective_curve.h"

#include "calibrate/detail/residual_smoother.h"

namespace stepcast::detail {

// Dense measurements are joined into this number of bins for fitting the form.
inline constexpr double kFormBinsPerOctave = 8;

// Fits the form to at least one point. Returns the best of several starts; with `near`, the form reached from there.
[[nodiscard]] StartupForm fit_startup_points(std::span<const CurvePoint> points, double factor,
                                             const StartupForm* near = nullptr);

}  // namespace stepcast::detail
