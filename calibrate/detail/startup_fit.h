// Fits StartupForm (cost/collective_curve.h) to points.
#pragma once

#include <span>

#include "stepcast/cost/collective_curve.h"

#include "calibrate/detail/residual_smoother.h"

namespace stepcast::detail {

// Dense measurements are joined for the form.
inline constexpr double kFormBinsPerOctave = 8;

// The form for points (at least one), best of several starts; with `near` the one that is reached from there.
[[nodiscard]] StartupForm fit_startup_points(std::span<const CurvePoint> points, double factor,
                                             const StartupForm* near = nullptr);

}  // namespace stepcast::detail
