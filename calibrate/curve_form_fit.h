// Fits the two closed forms of a curve (cost/collective_curve.h) to samples.
#pragma once

#include <span>

#include "stepcast/cost/collective_curve.h"

#include "calibrate/collective_measurements.h"

namespace stepcast {

// The published procedure: see docs/collectives.md. Needs two distinct sizes.
[[nodiscard]] SigmoidForm fit_published_form(std::span<const CollectiveSample> samples, double factor);

// Our form: robust regularised least squares on ln(time).
[[nodiscard]] StartupForm fit_startup_form(std::span<const CollectiveSample> samples, double factor);

}  // namespace stepcast
