// The p10-p90 band of a fitted curve: how far the samples of every octave lie from what all others say.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "stepcast/cost/collective_curve.h"
#include "stepcast/operation/dtype.h"
#include "stepcast/platform/platform.h"

#include "calibrate/collective_measurements.h"
#include "calibrate/detail/residual_smoother.h"

namespace stepcast::detail {

// Samples of one curve as points of a fit over the logarithm of the size.

struct CurvePoint {
  double x = 0;           // log2 bytes
  double y = 0;           // ln us
  double weight = 1;      // samples behind it
  std::size_t dtype = 0;  // index into the dtypes that were asked for
};

// Repeats of a size are not independent: more of them weigh no more than this.
inline constexpr double kMaxRepeatWeight = 3;

// Samples of one size become their median, dense sizes one point per bin; `dtypes` apart from each other, or
// all together if it is empty. Ordered by dtype, then size.
[[nodiscard]] std::vector<CurvePoint> join_samples(std::span<const CollectiveSample> samples,
                                                   double bins_per_octave, std::span<const DType> dtypes);

// The octave that a size lies in: 20 from 1 MiB to just below 2 MiB.
[[nodiscard]] long octave_of(double log2_bytes);

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
