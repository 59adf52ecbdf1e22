// What the form of a curve leaves over, smoothed over the logarithm of the size: a Gaussian process with a
// Matern-3/2 kernel (protocol changes are kinks that no short formula has) and heavy-tailed noise, alike for
// all dtypes plus a little for each.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "calibrate/detail/curve_band.h"

namespace stepcast::detail {

// Points are joined to so many bins per octave for the smoother.
inline constexpr double kResidualBinsPerOctave = 4;

class ResidualSmoother {
 public:
  // `residuals` [i] is ln(measured / form) at `points` [i].
  ResidualSmoother(std::vector<CurvePoint> points, std::vector<double> residuals, bool several_dtypes);

  [[nodiscard]] double at(double x, std::size_t dtype) const;

  // What is left of the points of `members` when these are predicted from all others, whose residuals are
  // `residuals` [i] (those of the members do not count): the closed form of leaving a block out of a Gaussian
  // process, the solution of (K^-1)_bb e = (K^-1 r)_b.
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
