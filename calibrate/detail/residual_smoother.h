// Smooths the residuals of a fitted curve over the logarithm of the size. A Gaussian process with a Matern-3/2 kernel
// (protocol changes are kinks that no short formula describes) and heavy-tailed noise. The process is common to all dtypes,
// plus a small one for each dtype.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "stepcast/operation/dtype.h"

#include "calibrate/collective_measurements.h"

namespace stepcast::detail {

// Samples of one curve as points of a fit over the logarithm of the size.

struct CurvePoint {
  double x = 0;           // log2 bytes
  double y = 0;           // ln us
  double weight = 1;      // samples behind it
  std::size_t dtype = 0;  // index into the dtypes that were asked for
};

// Repeats of one size are not independent: their weight is limited to this.
inline constexpr double kMaxRepeatWeight = 3;

// Joins the samples of one size into their median, and dense sizes into one point per bin. Points of different `dtypes` are
// separate; with empty `dtypes` all samples are joined. Ordered by dtype, then size.
[[nodiscard]] std::vector<CurvePoint> join_samples(std::span<const CollectiveSample> samples,
                                                   double bins_per_octave, std::span<const DType> dtypes);

// The octave of a size: 20 from 1 MiB to just below 2 MiB.
[[nodiscard]] long octave_of(double log2_bytes);

// Bins per octave into which points are joined for the smoother.
inline constexpr double kResidualBinsPerOctave = 4;

class ResidualSmoother {
 public:
  // `residuals` [i] is ln(measured / form) at `points` [i].
  ResidualSmoother(std::vector<CurvePoint> points, std::vector<double> residuals, bool several_dtypes);

  [[nodiscard]] double at(double x, std::size_t dtype) const;

  // Prediction errors of the points of `members` from all other points. `residuals` [i] are the residuals of all points;
  // those of the members are ignored. Closed form of leaving a block out of a Gaussian process: e solves (K^-1)_bb e = (K^-1
  // r)_b.
  [[nodiscard]] std::vector<double> left_out(std::span<const std::size_t> members,
                                             std::span<const double> residuals) const;

 private:
  [[nodiscard]] double covariance(const CurvePoint& a, const CurvePoint& b) const;

  std::vector<CurvePoint> points_;
  std::vector<double> residuals_;
  bool dtypes_;
  std::vector<double> factor_, weights_, inverse_;
};

}  // namespace stepcast::detail
