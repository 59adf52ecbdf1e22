// Smooths the residuals of a curve over the logarithm of the size: a Gaussian process with a Matern-3/2 kernel (protocol changes
// are kinks that no short formula represents) and heavy-tailed noise. One process is shared by all dtypes, with a small
// deviation for each.
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

// Points are merged into this number of bins per octave for the smoother.
inline constexpr double kResidualBinsPerOctave = 4;

class ResidualSmoother {
 public:
  // `residuals` [i] is ln(measured / form) at `points` [i].
  ResidualSmoother(std::vector<CurvePoint> points, std::vector<double> residuals, bool several_dtypes);

  [[nodiscard]] double at(double x, std::size_t dtype) const;

  // Leave-block-out residuals of the points of `members`, predicted from all other points and their `residuals` [i]. Closed form
  // for a Gaussian process: the solution of (K^-1)_bb e = (K^-1 r)_b.
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
