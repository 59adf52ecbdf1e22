// The p10-p90 band of a fitted curve: how far the samples of every octave lie from what all others say.
#pragma once

#include <span>
#include <vector>

#include "stepcast/cost/collective_curve.h"
#include "stepcast/operation/dtype.h"
#include "stepcast/platform/platform.h"

#include "calibrate/collective_measurements.h"
#include "calibrate/detail/residual_smoother.h"

namespace stepcast::detail {

struct BandSource {
  std::span<const CollectiveSample> samples;
  std::span<const DType> dtypes;       // of the samples, as `points` number them
  std::span<const CurvePoint> points;  // what the smoother was made of
  const ResidualSmoother& smoother;
  const StartupForm& form;
  double factor = 1;  // bus_factor()
};

// Quantiles of ln(sample / prediction) by stretches of two octaves. The prediction of an octave comes from a form
// refitted without the octave and from the smoother without it: nothing that made the prediction saw it.
[[nodiscard]] std::vector<ResidualQuantiles> left_out_band(const BandSource& source);

}  // namespace stepcast::detail
