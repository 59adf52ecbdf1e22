// The p10-p90 band of a fitted curve: the errors of the samples of every octave when predicted from the others.
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
  std::span<const DType> dtypes;       // dtypes of the samples; `points` have indices into it
  std::span<const CurvePoint> points;  // the points of the smoother
  const ResidualSmoother& smoother;
  const StartupForm& form;
  double factor = 1;  // bus_factor()
};

// Quantiles of ln(sample / prediction) by stretches of two octaves. The prediction of an octave comes from a form and a
// smoother fitted without this octave.
[[nodiscard]] std::vector<ResidualQuantiles> left_out_band(const BandSource& source);

}  // namespace stepcast::detail
