// Samples of one curve as points of a fit over the logarithm of the size.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "stepcast/operation/dtype.h"

#include "calibrate/collective_measurements.h"

namespace stepcast::detail {

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

}  // namespace stepcast::detail
