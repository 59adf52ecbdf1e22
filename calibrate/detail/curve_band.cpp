#include "calibrate/detail/curve_band.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>
#include <utility>

#include "calibrate/detail/startup_fit.h"

namespace stepcast::detail {
namespace {

// Chosen by cross-validation over the curves of docs/collectives.md (whole octaves held out).
constexpr double kBandNeighbourOctaves = 1.0;
constexpr double kBandFloor = 0.001;  // least width of a band on each side, ln
constexpr double kBandOfFew = 1.5;    // quantiles of n points are widened by 1 + this / n: few points
                                      // show little of what can happen

double weighted_quantile(std::vector<std::pair<double, double>>& value_weight, double share) {
  std::ranges::sort(value_weight);
  double total = 0;
  for (const auto& [v, w] : value_weight) total += w;
  double sum = 0;
  for (std::size_t i = 0; i < value_weight.size(); ++i) {
    const double next = sum + value_weight[i].second;
    if (next >= share * total) {
      // Between the middles of neighbours.
      const double middle = sum + value_weight[i].second / 2;
      if (share * total < middle && i > 0) {
        const double before = sum - value_weight[i - 1].second / 2;
        const double part = (share * total - before) / (middle - before);
        return value_weight[i - 1].first + part * (value_weight[i].first - value_weight[i - 1].first);
      }
      if (share * total > middle && i + 1 < value_weight.size()) {
        const double after = next + value_weight[i + 1].second / 2;
        const double part = (share * total - middle) / (after - middle);
        return value_weight[i].first + part * (value_weight[i + 1].first - value_weight[i].first);
      }
      return value_weight[i].first;
    }
    sum = next;
  }
  return value_weight.empty() ? 0 : value_weight.back().first;
}

struct Miss {
  double x, miss, weight;
};

// [point] error of the prediction of the point from the other octaves.
std::vector<double> left_out_points(const BandSource& s) {
  std::map<long, std::vector<std::size_t>> octaves;
  for (std::size_t i = 0; i < s.points.size(); ++i) octaves[octave_of(s.points[i].x)].push_back(i);
  const std::vector<CurvePoint> form_points = join_samples(s.samples, kFormBinsPerOctave, {});
  std::vector<double> result(s.points.size()), residuals(s.points.size());
  for (const auto& [octave, members] : octaves) {
    std::vector<CurvePoint> kept;
    for (const CurvePoint& p : form_points)
      if (octave_of(p.x) != octave) kept.push_back(p);
    const StartupForm form = kept.empty() ? s.form : fit_startup_points(kept, s.factor, &s.form);
    for (std::size_t i = 0; i < s.points.size(); ++i)
      residuals[i] = s.points[i].y - form.ln_time_us(s.points[i].x);
    const std::vector<double> left = s.smoother.left_out(members, residuals);
    for (std::size_t a = 0; a < members.size(); ++a) result[members[a]] = left[a];
  }
  return result;
}

std::vector<Miss> misses_of(const BandSource& s) {
  const std::vector<double> left_out = left_out_points(s);
  std::map<long, double> samples_of_octave;
  for (const CollectiveSample& sample : s.samples)
    ++samples_of_octave[octave_of(std::log2(sample.message_bytes))];
  std::vector<Miss> misses;
  for (const CollectiveSample& sample : s.samples) {
    const double x = std::log2(sample.message_bytes);
    const auto dtype = static_cast<std::size_t>(std::ranges::find(s.dtypes, sample.dtype) - s.dtypes.begin());
    // Index of the point that includes the sample.
    std::size_t nearest = 0;
    double distance = 1e300;
    for (std::size_t i = 0; i < s.points.size(); ++i) {
      if (s.points[i].dtype == dtype && std::abs(s.points[i].x - x) < distance) {
        distance = std::abs(s.points[i].x - x);
        nearest = i;
      }
    }
    const CurvePoint& point = s.points[nearest];
    const double moved =
        std::log(sample.time_us) - s.form.ln_time_us(x) - (point.y - s.form.ln_time_us(point.x));
    misses.push_back({x, left_out[nearest] + moved, 1 / samples_of_octave[octave_of(x)]});
  }
  return misses;
}

}  // namespace

std::vector<ResidualQuantiles> left_out_band(const BandSource& s) {
  const std::vector<Miss> misses = misses_of(s);
  double x_min = misses.front().x, x_max = x_min;
  for (const Miss& m : misses) {
    x_min = std::min(x_min, m.x);
    x_max = std::max(x_max, m.x);
  }
  std::vector<ResidualQuantiles> band;
  const double octaves = std::max(1.0, x_max - x_min);
  const auto stretches = static_cast<std::size_t>(std::clamp(std::ceil(octaves / 2), 1.0, 16.0));
  for (std::size_t i = 0; i < stretches; ++i) {
    const double from = x_min + octaves * static_cast<double>(i) / static_cast<double>(stretches);
    const double to = x_min + octaves * static_cast<double>(i + 1) / static_cast<double>(stretches);
    const double middle = (from + to) / 2;
    std::vector<std::pair<double, double>> nearby;
    for (const Miss& m : misses) {
      const double d = (m.x - middle) / kBandNeighbourOctaves;
      nearby.emplace_back(m.miss, m.weight * std::exp(-0.5 * d * d) + 1e-12);
    }
    double sum = 0, squares = 0;
    for (const CurvePoint& p : s.points) {
      const double d = (p.x - middle) / kBandNeighbourOctaves;
      const double w = std::exp(-0.5 * d * d);
      sum += w;
      squares += w * w;
    }
    const double widening = squares > 0 ? 1 + kBandOfFew * squares / (sum * sum) : 2;
    ResidualQuantiles q;
    const double transfer = s.form.ln_time_us(middle) - s.form.ln_startup_us;
    const double limit = std::log(s.factor / 1000) + middle * std::numbers::ln2 - s.form.ln_max_GBps;
    q.region = transfer < 0.2 ? "latency" : s.form.ln_time_us(middle) - limit < 0.2 ? "bandwidth" : "knee";
    q.message_bytes_min = std::exp2(from);
    q.message_bytes_max = std::exp2(to);
    q.log_p50 = weighted_quantile(nearby, 0.5);
    q.log_p10 = std::min(widening * weighted_quantile(nearby, 0.1), 0.0) - kBandFloor;
    q.log_p90 = std::max(widening * weighted_quantile(nearby, 0.9), 0.0) + kBandFloor;
    for (const Miss& m : misses) q.n += m.x >= from && (m.x < to || i + 1 == stretches) ? 1 : 0;
    band.push_back(q);
  }
  return band;
}

}  // namespace stepcast::detail
