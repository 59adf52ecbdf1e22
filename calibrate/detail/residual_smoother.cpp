#include "calibrate/detail/residual_smoother.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>
#include <utility>

#include "stepcast/base/statistics.h"

#include "calibrate/detail/minimization.h"

namespace stepcast::detail {

namespace {

// Chosen by cross-validation over the curves of docs/collectives.md (whole octaves held out); none is tuned
// to a single curve. Halving or doubling any of them changes the mean error by less than a tenth.
constexpr double kSmoothAmplitude = 0.07;  // what the form misses, ln
constexpr double kSmoothOctaves = 3;       // distance over which residuals are correlated
constexpr double kSmoothNoise = 0.02;
constexpr double kDtypeAmplitude = 0.05;
constexpr double kDtypeOctaves = 4;
constexpr double kStudentDegrees = 4;  // noise has heavy tails

double matern32(double distance, double length) {
  const double r = std::abs(distance) / length * std::numbers::sqrt3;
  return (1 + r) * std::exp(-r);
}

// The value with the least mean relative error: the median with weights 1 / time. Slow phases of a machine get less weight
// than its best times.
double relative_median(std::vector<double> ln_times) {
  if (ln_times.empty()) return 0;
  std::ranges::sort(ln_times);
  double total = 0;
  for (const double v : ln_times) total += std::exp(ln_times.front() - v);
  double sum = 0;
  for (std::size_t i = 0; i < ln_times.size(); ++i) {
    sum += std::exp(ln_times.front() - ln_times[i]);
    if (std::abs(sum - total / 2) < 1e-9 * total && i + 1 < ln_times.size())
      return (ln_times[i] + ln_times[i + 1]) / 2;
    if (sum > total / 2) return ln_times[i];
  }
  return ln_times.back();
}

}  // namespace

ResidualSmoother::ResidualSmoother(std::vector<CurvePoint> points, std::vector<double> residuals,
                                   bool several_dtypes)
    : points_(std::move(points)), residuals_(std::move(residuals)), dtypes_(several_dtypes) {
  const std::size_t n = points_.size();
  std::vector<double> relative_precision(n, 1.0);
  for (int pass = 0; pass < 5; ++pass) {
    factor_.assign(n * n, 0.0);
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t j = 0; j <= i; ++j) factor_[i * n + j] = covariance(points_[i], points_[j]);
      const double repeats = std::min(points_[i].weight, kMaxRepeatWeight);
      factor_[i * n + i] += kSmoothNoise * kSmoothNoise / (repeats * relative_precision[i]) + 1e-10;
    }
    if (!cholesky(factor_, n)) break;  // cannot happen: the diagonal outweighs
    weights_ = residuals_;
    cholesky_solve(factor_, n, weights_);
    for (std::size_t i = 0; i < n; ++i) {
      const double e = (residuals_[i] - at(points_[i].x, points_[i].dtype)) / kSmoothNoise;
      relative_precision[i] = (kStudentDegrees + 1) / (kStudentDegrees + e * e);
    }
  }
  inverse_ = cholesky_inverse(factor_, n);
}

double ResidualSmoother::at(double x, std::size_t dtype) const {
  double sum = 0;
  for (std::size_t i = 0; i < points_.size(); ++i)
    sum += weights_[i] * covariance({x, 0, 1, dtype}, points_[i]);
  return sum;
}

std::vector<double> ResidualSmoother::left_out(std::span<const std::size_t> members,
                                               std::span<const double> residuals) const {
  const std::size_t n = points_.size(), m = members.size();
  std::vector<double> block(m * m), rest(m);
  for (std::size_t a = 0; a < m; ++a) {
    for (std::size_t b = 0; b <= a; ++b) block[a * m + b] = inverse_[members[a] * n + members[b]];
    for (std::size_t i = 0; i < n; ++i) rest[a] += inverse_[members[a] * n + i] * residuals[i];
  }
  if (cholesky(block, m)) cholesky_solve(block, m, rest);
  return rest;
}

double ResidualSmoother::covariance(const CurvePoint& a, const CurvePoint& b) const {
  double c = kSmoothAmplitude * kSmoothAmplitude * matern32(a.x - b.x, kSmoothOctaves);
  if (dtypes_ && a.dtype == b.dtype)
    c += kDtypeAmplitude * kDtypeAmplitude * matern32(a.x - b.x, kDtypeOctaves);
  return c;
}

std::vector<CurvePoint> join_samples(std::span<const CollectiveSample> samples, double bins_per_octave,
                                     std::span<const DType> dtypes) {
  std::map<std::pair<std::size_t, double>, std::vector<double>> by_size;
  for (const CollectiveSample& s : samples) {
    std::size_t dtype = 0;
    if (!dtypes.empty())
      dtype = static_cast<std::size_t>(std::ranges::find(dtypes, s.dtype) - dtypes.begin());
    by_size[{dtype, s.message_bytes}].push_back(std::log(s.time_us));
  }
  std::map<std::pair<std::size_t, long>, std::vector<CurvePoint>> bins;
  for (auto& [key, times] : by_size) {
    const double x = std::log2(key.second);
    const auto bin = static_cast<long>(std::floor(x * bins_per_octave + 1e-9));
    const auto n = static_cast<double>(times.size());
    bins[{key.first, bin}].push_back({x, median(std::move(times)), n, key.first});
  }
  std::vector<CurvePoint> points;
  for (const auto& [key, members] : bins) {
    CurvePoint joined{0, 0, 0, key.first};
    for (const CurvePoint& p : members) {
      joined.x += p.x / static_cast<double>(members.size());
      joined.weight += p.weight;
    }
    std::vector<double> moved;  // on a curve with slightly less slope than the size
    for (const CurvePoint& p : members) moved.push_back(p.y - (p.x - joined.x) * std::numbers::ln2 * 0.9);
    joined.y = relative_median(std::move(moved));
    points.push_back(joined);
  }
  return points;
}

long octave_of(double log2_bytes) { return static_cast<long>(std::floor(log2_bytes + 1e-9)); }

}  // namespace stepcast::detail
