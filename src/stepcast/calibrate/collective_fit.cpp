#include "stepcast/calibrate/collective_fit.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numbers>
#include <set>

#include <fmt/format.h>

#include "stepcast/base/statistics.h"
#include "stepcast/calibrate/detail/least_squares.h"

namespace stepcast {
namespace {

constexpr double kLn2 = std::numbers::ln2;

// Chosen by cross-validation over the curves of docs/collectives.md (whole octaves held out); none is tuned
// to a single curve. Halving or doubling any of them changes the mean error by less than a tenth.
constexpr double kFormBinsPerOctave = 8;      // dense measurements are joined for the form
constexpr double kResidualBinsPerOctave = 4;  // and for the smoother
constexpr double kFormNoise = 0.01;           // against the preferences for parameters below
constexpr double kRobustScale = 0.03;         // residuals beyond count linearly
constexpr double kMaxRepeatWeight = 3;        // repeats of a size are not independent
constexpr double kSmoothAmplitude = 0.07;     // what the form misses, ln
constexpr double kSmoothOctaves = 3;          // and over which distance that stays alike
constexpr double kSmoothNoise = 0.02;
constexpr double kDtypeAmplitude = 0.05;
constexpr double kDtypeOctaves = 4;
constexpr double kStudentDegrees = 4;  // noise has heavy tails
constexpr double kBandNeighbourOctaves = 1.0;
constexpr double kBandFloor = 0.001;  // no band is narrower on either side, ln
constexpr double kBandOfFew = 1.5;    // quantiles of n points are widened by 1 + this / n: few points
                                      // show little of what can happen, and the form has seen them
constexpr double kDtypeDiffers = 0.03;

struct Point {
  double x = 0;       // log2 bytes
  double y = 0;       // ln us
  double weight = 1;  // samples behind it
  std::size_t dtype = 0;
};

// The value of least mean relative error: the median with weights 1 / time. Slow stretches of a machine weigh
// less than what it can do.
double relative_median(std::vector<double> ln_times) {
  if (ln_times.empty()) return 0;
  std::sort(ln_times.begin(), ln_times.end());
  double total = 0;
  for (const double v : ln_times) total += std::exp(ln_times.front() - v);
  double sum = 0;
  for (std::size_t i = 0; i < ln_times.size(); ++i) {
    sum += std::exp(ln_times.front() - ln_times[i]);
    if (std::abs(sum - total / 2) < 1e-9 * total && i + 1 < ln_times.size()) {
      return (ln_times[i] + ln_times[i + 1]) / 2;
    }
    if (sum > total / 2) return ln_times[i];
  }
  return ln_times.back();
}

// Samples of one size become their median, dense sizes one point per bin.
std::vector<Point> join(std::span<const CollectiveSample> samples, double bins_per_octave,
                        std::span<const DType> dtypes) {
  std::map<std::pair<std::size_t, double>, std::vector<double>> by_size;
  for (const CollectiveSample& s : samples) {
    std::size_t dtype = 0;
    if (!dtypes.empty()) {
      dtype = static_cast<std::size_t>(std::find(dtypes.begin(), dtypes.end(), s.dtype) - dtypes.begin());
    }
    by_size[{dtype, s.message_bytes}].push_back(std::log(s.time_us));
  }
  std::map<std::pair<std::size_t, long>, std::vector<Point>> bins;
  for (auto& [key, times] : by_size) {
    const double x = std::log2(key.second);
    const auto bin = static_cast<long>(std::floor(x * bins_per_octave + 1e-9));
    const auto n = static_cast<double>(times.size());
    bins[{key.first, bin}].push_back({x, median(std::move(times)), n, key.first});
  }
  std::vector<Point> points;
  for (const auto& [key, members] : bins) {
    Point joined{0, 0, 0, key.first};
    for (const Point& p : members) {
      joined.x += p.x / static_cast<double>(members.size());
      joined.weight += p.weight;
    }
    std::vector<double> moved;  // along a line that is a little flatter than the size
    for (const Point& p : members) moved.push_back(p.y - (p.x - joined.x) * kLn2 * 0.9);
    joined.y = relative_median(std::move(moved));
    points.push_back(joined);
  }
  return points;
}

StartupForm form_of(std::span<const double> p, double factor) {
  StartupForm form;
  form.ln_startup_us = p[0];
  form.ln_max_GBps = p[1];
  form.d1 = p[2];
  form.x1 = p[3];
  form.k = p[4];
  form.ln_q = p[5];
  form.d2 = p[6];
  form.x2 = p[7];
  form.factor = factor;
  return form;
}

StartupForm fit_form(const std::vector<Point>& points, double factor) {
  double x_min = points.front().x, x_max = points.front().x, ln_fastest = points.front().y, ln_bus = -1e300;
  for (const Point& p : points) {
    x_min = std::min(x_min, p.x);
    x_max = std::max(x_max, p.x);
    ln_fastest = std::min(ln_fastest, p.y);
    ln_bus = std::max(ln_bus, std::log(factor / 1000) + p.x * kLn2 - p.y);
  }
  detail::LeastSquares problem;
  // Preferences keep parameters in place that few points say little about. The physical limits: no message is
  // faster than the start-up, and the limit of the bandwidth is near the best that was seen.
  //                 startup,          bandwidth,      d1, x1,                 k,    ln q,          d2,  x2
  problem.centre = {ln_fastest, ln_bus + 0.02, 0.7, (x_min + x_max) / 2,
                    0.7,        std::log(1.4), 0.2, (x_min + x_max) / 2 + 2};
  problem.spread = {1.5, 0.5, 1.0, 6.0, 0.7, 0.5, 0.5, 6.0};
  problem.low = {-3.0, ln_bus - 3, 0.0, x_min - 3, 0.05, std::log(0.6), 0.0, x_min - 3};
  problem.high = {ln_fastest + 0.3, ln_bus + 0.15, 8.0, x_max + 3, 3.0, std::log(4.0), 6.0, x_max + 3};
  problem.low[0] = std::min(problem.low[0], ln_fastest - 1);
  problem.robust_scale = kRobustScale;
  double sum = 0;
  for (const Point& p : points) {
    problem.weights.push_back(std::sqrt(std::min(p.weight, kMaxRepeatWeight)));
    sum += problem.weights.back();
  }
  for (double& w : problem.weights) w *= static_cast<double>(points.size()) / sum / kFormNoise;
  problem.residuals = [&](std::span<const double> p, std::span<double> r) {
    const StartupForm form = form_of(p, factor);
    for (std::size_t i = 0; i < points.size(); ++i) r[i] = form.ln_time_us(points[i].x) - points[i].y;
  };
  // Several starts, the most promising of which are followed: the two steps of the bandwidth may lie
  // anywhere.
  std::vector<std::pair<double, std::vector<double>>> starts;
  for (const double apart : {0.15, 0.3, 0.45}) {
    for (const double where : {0.15, 0.3, 0.5, 0.7}) {
      for (const double depth : {0.3, 1.5}) {
        std::vector<double> p = {ln_fastest - 0.01,
                                 ln_bus + 0.02,
                                 depth,
                                 x_min + (x_max - x_min) * where,
                                 0.8,
                                 std::log(1.4),
                                 0.3,
                                 x_min + (x_max - x_min) * std::min(where + apart, 0.95)};
        const double cost = problem.cost(p);
        starts.emplace_back(cost, std::move(p));
      }
    }
  }
  std::stable_sort(starts.begin(), starts.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  starts.resize(8);
  double best = 1e300;
  std::vector<double> chosen;
  for (auto& [cost, p] : starts) {
    const double reached = problem.minimise(p);
    if (reached < best) {
      best = reached;
      chosen = p;
    }
  }
  if (chosen.empty()) chosen = starts.front().second;
  return form_of(chosen, factor);
}

double matern32(double distance, double length) {
  const double r = std::abs(distance) / length * std::numbers::sqrt3;
  return (1 + r) * std::exp(-r);
}

// Smooths residuals over x, alike for all dtypes plus a little for each.
class Smoother {
 public:
  Smoother(std::vector<Point> points, std::vector<double> residuals, bool several_dtypes)
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
      if (!detail::cholesky(factor_, n)) break;  // cannot happen: the diagonal outweighs
      weights_ = residuals_;
      detail::solve_lower(factor_, n, weights_);
      detail::solve_upper(factor_, n, weights_);
      for (std::size_t i = 0; i < n; ++i) {
        const double e = (residuals_[i] - at(points_[i].x, points_[i].dtype)) / kSmoothNoise;
        relative_precision[i] = (kStudentDegrees + 1) / (kStudentDegrees + e * e);
      }
    }
  }

  [[nodiscard]] double at(double x, std::size_t dtype) const {
    double sum = 0;
    for (std::size_t i = 0; i < points_.size(); ++i)
      sum += weights_[i] * covariance({x, 0, 1, dtype}, points_[i]);
    return sum;
  }

  // What is left of each point when its octave is predicted from the others, the form staying as it is:
  // K_bb^-1-block solve of (K^-1 r)_b, the closed form of leaving a block out.
  [[nodiscard]] std::vector<double> left_out_residuals() const {
    const std::size_t n = points_.size();
    std::vector<double> inverse(n * n);
    std::vector<double> unit(n);
    for (std::size_t j = 0; j < n; ++j) {
      std::fill(unit.begin(), unit.end(), 0.0);
      unit[j] = 1;
      detail::solve_lower(factor_, n, unit);
      detail::solve_upper(factor_, n, unit);
      for (std::size_t i = 0; i < n; ++i) inverse[i * n + j] = unit[i];
    }
    std::map<long, std::vector<std::size_t>> octaves;
    for (std::size_t i = 0; i < n; ++i)
      octaves[static_cast<long>(std::floor(points_[i].x + 1e-9))].push_back(i);
    std::vector<double> result(n);
    for (const auto& [octave, members] : octaves) {
      const std::size_t m = members.size();
      std::vector<double> block(m * m), rest(m);
      for (std::size_t a = 0; a < m; ++a) {
        for (std::size_t b = 0; b <= a; ++b) block[a * m + b] = inverse[members[a] * n + members[b]];
        rest[a] = weights_[members[a]];
      }
      if (detail::cholesky(block, m)) {
        detail::solve_lower(block, m, rest);
        detail::solve_upper(block, m, rest);
      }
      for (std::size_t a = 0; a < m; ++a) result[members[a]] = rest[a];
    }
    return result;
  }

 private:
  [[nodiscard]] double covariance(const Point& a, const Point& b) const {
    double c = kSmoothAmplitude * kSmoothAmplitude * matern32(a.x - b.x, kSmoothOctaves);
    if (dtypes_ && a.dtype == b.dtype) {
      c += kDtypeAmplitude * kDtypeAmplitude * matern32(a.x - b.x, kDtypeOctaves);
    }
    return c;
  }

  std::vector<Point> points_;
  std::vector<double> residuals_;
  bool dtypes_;
  std::vector<double> factor_, weights_;
};

double weighted_quantile(std::vector<std::pair<double, double>>& value_weight, double share) {
  std::sort(value_weight.begin(), value_weight.end());
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

// Six digits say more than any measurement knows, and keep files short.
double rounded(double v) {
  if (v == 0 || !std::isfinite(v)) return v;
  const double unit = std::pow(10.0, std::floor(std::log10(std::abs(v))) - 5);
  return unit >= 1 ? std::round(v / unit) * unit : std::round(v / unit) / std::round(1 / unit);
}

std::size_t distinct_sizes(std::span<const CollectiveSample> samples) {
  std::set<double> sizes;
  for (const CollectiveSample& s : samples) sizes.insert(s.message_bytes);
  return sizes.size();
}

}  // namespace

std::string measuring_command(CollectiveOp op, std::uint32_t n_nodes, std::uint32_t gpus_per_node) {
  std::string_view program = to_string(op);
  if (op == CollectiveOp::all_to_all) program = "alltoall";
  if (op == CollectiveOp::send_receive) program = "sendrecv";
  if (n_nodes <= 1) {
    return fmt::format("{}_perf -b 8 -e 4G -f 2 -g {}", program, gpus_per_node);
  }
  return fmt::format("mpirun -np {} -N {} {}_perf -b 8 -e 4G -f 2 -g 1", n_nodes * gpus_per_node,
                     gpus_per_node, program);
}

StartupForm fit_startup_form(std::span<const CollectiveSample> samples, double factor) {
  return fit_form(join(samples, kFormBinsPerOctave, {}), factor);
}

SigmoidForm fit_published_form(std::span<const CollectiveSample> samples, double factor) {
  std::map<double, std::vector<double>> by_size;
  for (const CollectiveSample& s : samples) by_size[s.message_bytes].push_back(s.time_us);
  constexpr double kEpsilon = 4e-4;  // GB/s, added to every bandwidth
  std::vector<double> size, latency, bandwidth;
  for (auto& [bytes, times] : by_size) {
    size.push_back(bytes);
    latency.push_back(median(std::move(times)));
    bandwidth.push_back(factor * bytes / 1000 / latency.back() + kEpsilon);
  }
  const std::size_t n = size.size();
  SigmoidForm form;
  form.factor = factor;
  form.max_bandwidth_GBps = *std::max_element(bandwidth.begin(), bandwidth.end());
  // m2: from the largest size down to the first with less than 95 % of the best, then two sizes up.
  std::size_t j = n - 1;
  while (j > 0 && bandwidth[j] >= 0.95 * form.max_bandwidth_GBps) --j;
  const std::size_t second = std::min(j + 2, n - 1);
  // m1: the size before the relative slope of the latency first exceeds 0.1, from the sixth size on.
  std::size_t first = std::min<std::size_t>(4, n - 1);
  for (std::size_t i = 5; i + 1 < n; ++i) {
    if (std::abs((latency[i + 1] - latency[i - 1]) / (2 * latency[i])) > 0.1) {
      first = i - 1;
      break;
    }
  }
  form.log2_m1 = std::log2(size[first]);
  form.log2_m2 = std::log2(size[second]);
  form.startup_us = latency[first > 0 ? first - 1 : 0];
  std::vector<double> x, y;
  for (std::size_t i = first; i <= second && i < n; ++i) {
    x.push_back(std::log2(size[i]));
    y.push_back(std::log10(bandwidth[i]));
  }
  if (x.size() < 4) {  // four parameters need four points: a constant bandwidth then
    double mean = 0;
    for (const double v : y) mean += v / static_cast<double>(y.size());
    form.b = y.empty() ? std::log10(form.max_bandwidth_GBps) : mean;
    return form;
  }
  detail::LeastSquares problem;
  std::vector<double> p = {x.back(), median(x), 1, *std::min_element(y.begin(), y.end())};
  problem.centre = p;
  problem.spread.assign(4, 1e9);
  problem.low.assign(4, -1e6);
  problem.high.assign(4, 1e6);
  problem.weights.assign(x.size(), 1.0);
  problem.max_iterations = 300;
  problem.residuals = [&](std::span<const double> q, std::span<double> r) {
    for (std::size_t i = 0; i < x.size(); ++i)
      r[i] = q[0] / (1 + std::exp(-q[2] * (x[i] - q[1]))) + q[3] - y[i];
  };
  problem.minimise(p);
  form.A = p[0];
  form.x0 = p[1];
  form.k = p[2];
  form.b = p[3];
  return form;
}

const TimeCurve& CollectiveFit::curve(DType dtype) const {
  for (const Fitted& f : fitted_) {
    if (f.dtype == dtype && dtype != DType::unknown) return f.curve;
  }
  return fitted_.front().curve;
}

std::vector<CollectiveCurve> CollectiveFit::records(const Provenance& provenance) const {
  std::vector<CollectiveCurve> result;
  for (const Fitted& f : fitted_) {
    if (f.dtype != DType::unknown) {
      double largest = 0;
      for (std::size_t i = 0; i < f.knots_log2.size(); ++i) {
        largest = std::max(largest, std::abs(f.knots_ln_us[i] - fitted_.front().knots_ln_us[i]));
      }
      if (fitted_.size() == 2 || largest < kDtypeDiffers) continue;
    }
    CollectiveCurve record;
    record.collective = collective_;
    record.dtype = f.dtype;
    record.n_nodes = n_nodes_;
    record.gpus_per_node = gpus_per_node_;
    record.n_ranks = n_ranks_;
    record.published = published.record();
    record.improved = form.record();
    for (std::size_t i = 0; i < f.knots_log2.size(); ++i) {
      record.knots.push_back({std::round(std::exp2(f.knots_log2[i])), rounded(std::exp(f.knots_ln_us[i]))});
    }
    for (CurveForm* curve_form : {&record.published, &record.improved}) {
      for (auto& [parameter, value] : curve_form->parameters) value = rounded(value);
    }
    record.residuals = residuals_;
    for (ResidualQuantiles& q : record.residuals) {
      q.message_bytes_min = std::round(q.message_bytes_min);
      q.message_bytes_max = std::round(q.message_bytes_max);
      for (double* v : {&q.log_p10, &q.log_p50, &q.log_p90}) *v = std::round(*v * 1e5) / 1e5;
    }
    record.provenance = provenance;
    record.provenance.source = FigureSource::fitted;
    record.provenance.n_rows = n_samples;
    record.provenance.error = {{"mape_pct", rounded(mape_pct)},
                               {"p90_ape_pct", rounded(p90_ape_pct)},
                               {"form_mape_pct", rounded(form_mape_pct)}};
    record.provenance.range = {{"message_bytes_min", std::round(std::exp2(measured_from))},
                               {"message_bytes_max", std::round(std::exp2(measured_to))}};
    result.push_back(std::move(record));
  }
  return result;
}

Result<CollectiveFit> fit_collective(const CollectiveMeasurements& measurements,
                                     const CollectiveFitOptions& options) {
  const std::span<const CollectiveSample> samples = measurements.samples;
  const std::size_t n_sizes = distinct_sizes(samples);
  if (n_sizes < std::max<std::size_t>(options.min_sizes, 2)) {
    return Error{fmt::format("{} cannot be fitted", measurements.name())}
        .found(fmt::format("{} message size{}", n_sizes, n_sizes == 1 ? "" : "s"))
        .expected(fmt::format("at least {}", std::max<std::size_t>(options.min_sizes, 2)))
        .advice(fmt::format(
            "measure with `{}`",
            measuring_command(measurements.collective, measurements.n_nodes, measurements.gpus_per_node)));
  }
  const double factor = bus_factor(measurements.collective, measurements.n_ranks);
  CollectiveFit fit;
  fit.collective_ = measurements.collective;
  fit.n_nodes_ = measurements.n_nodes;
  fit.gpus_per_node_ = measurements.gpus_per_node;
  fit.n_ranks_ = measurements.n_ranks;
  fit.n_samples = samples.size();
  fit.n_sizes = n_sizes;
  fit.form = fit_startup_form(samples, factor);
  fit.published = fit_published_form(samples, factor);

  std::vector<DType> dtypes;
  for (const CollectiveSample& s : samples) {
    if (std::find(dtypes.begin(), dtypes.end(), s.dtype) == dtypes.end()) dtypes.push_back(s.dtype);
  }
  std::sort(dtypes.begin(), dtypes.end());
  const std::vector<Point> points = join(samples, kResidualBinsPerOctave, dtypes);
  std::vector<double> over;
  for (const Point& p : points) over.push_back(p.y - fit.form.ln_time_us(p.x));
  const Smoother smoother{points, over, dtypes.size() > 1};
  const std::vector<double> left_out = smoother.left_out_residuals();

  double x_min = points.front().x, x_max = points.front().x;
  for (const CollectiveSample& s : samples) {
    x_min = std::min(x_min, std::log2(s.message_bytes));
    x_max = std::max(x_max, std::log2(s.message_bytes));
  }
  fit.measured_from = x_min;
  fit.measured_to = x_max;

  // The band. Every sample against what the other octaves say about its place, by region of sizes.
  struct Miss {
    double x, miss, weight;
  };
  std::vector<Miss> misses;
  std::map<long, double> samples_of_octave;
  for (const CollectiveSample& s : samples)
    ++samples_of_octave[static_cast<long>(std::floor(std::log2(s.message_bytes) + 1e-9))];
  for (const CollectiveSample& s : samples) {
    const double x = std::log2(s.message_bytes);
    const auto dtype =
        static_cast<std::size_t>(std::find(dtypes.begin(), dtypes.end(), s.dtype) - dtypes.begin());
    // The point that the sample went into.
    std::size_t nearest = 0;
    double distance = 1e300;
    for (std::size_t i = 0; i < points.size(); ++i) {
      if (points[i].dtype == dtype && std::abs(points[i].x - x) < distance) {
        distance = std::abs(points[i].x - x);
        nearest = i;
      }
    }
    const double moved = std::log(s.time_us) - fit.form.ln_time_us(x) - over[nearest];
    misses.push_back(
        {x, left_out[nearest] + moved, 1 / samples_of_octave[static_cast<long>(std::floor(x + 1e-9))]});
  }
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
    for (const Point& p : points) {
      const double d = (p.x - middle) / kBandNeighbourOctaves;
      const double w = std::exp(-0.5 * d * d);
      sum += w;
      squares += w * w;
    }
    const double widening = squares > 0 ? 1 + kBandOfFew * squares / (sum * sum) : 2;
    ResidualQuantiles q;
    const double transfer = fit.form.ln_time_us(middle) - fit.form.ln_startup_us;
    const double limit = std::log(factor / 1000) + middle * kLn2 - fit.form.ln_max_GBps;
    q.region = transfer < 0.2 ? "latency" : fit.form.ln_time_us(middle) - limit < 0.2 ? "bandwidth" : "knee";
    q.message_bytes_min = std::exp2(from);
    q.message_bytes_max = std::exp2(to);
    q.log_p50 = weighted_quantile(nearby, 0.5);
    q.log_p10 = std::min(widening * weighted_quantile(nearby, 0.1), 0.0) - kBandFloor;
    q.log_p90 = std::max(widening * weighted_quantile(nearby, 0.9), 0.0) + kBandFloor;
    for (const Miss& m : misses) q.n += m.x >= from && (m.x < to || i + 1 == stretches) ? 1 : 0;
    fit.residuals_.push_back(q);
  }

  // Knots: on the grid of powers of two where measurements usually lie, at most as many as a shipped file may
  // have.
  double step = 0.25;
  while (std::floor((x_max - x_min) / step) + 3 > static_cast<double>(kMaxShippedKnots)) step *= 2;
  std::vector<double> grid{x_min};
  for (double x = std::ceil(x_min / step + 0.01) * step; x < x_max - 0.01 * step; x += step)
    grid.push_back(x);
  if (x_max > x_min) grid.push_back(x_max);
  const auto tabulate = [&](DType dtype, auto residual_at) {
    std::vector<double> ln_us;
    for (const double x : grid) ln_us.push_back(fit.form.ln_time_us(x) + residual_at(x));
    make_non_decreasing(ln_us);
    const CurveParts parts{grid, ln_us, &fit.form, fit.residuals_, x_min, x_max};
    fit.fitted_.push_back({dtype, grid, std::move(ln_us), time_curve(parts)});
  };
  const auto mean_over_dtypes = [&](double x) {
    double sum = 0;
    for (std::size_t d = 0; d < dtypes.size(); ++d) sum += smoother.at(x, d);
    return sum / static_cast<double>(dtypes.size());
  };
  tabulate(DType::unknown, mean_over_dtypes);
  for (std::size_t d = 0; d < dtypes.size(); ++d) {
    if (dtypes[d] == DType::unknown) continue;
    tabulate(dtypes[d], [&](double x) { return smoother.at(x, d); });
  }

  std::vector<double> errors;
  double form_error = 0;
  std::map<double, std::vector<double>> by_size;
  for (const CollectiveSample& s : samples) {
    const double fitted = fit.curve(s.dtype).at(Bytes{s.message_bytes}).time.value();
    errors.push_back(100 * std::abs(fitted - s.time_us) / s.time_us);
    form_error += 100 * std::abs(fit.form.time(Bytes{s.message_bytes}).value() - s.time_us) / s.time_us;
    if (std::abs(std::log(fitted / s.time_us)) > options.outlier_ln) ++fit.n_outliers;
    by_size[s.message_bytes].push_back(s.time_us);
  }
  const auto n = static_cast<double>(errors.size());
  for (const double e : errors) fit.mape_pct += e / n;
  fit.form_mape_pct = form_error / n;
  std::sort(errors.begin(), errors.end());
  fit.p90_ape_pct = errors[static_cast<std::size_t>(0.9 * (n - 1))];
  for (auto& [bytes, times] : by_size) {
    fit.points.push_back({bytes, median(std::move(times)), fit.curve().at(Bytes{bytes}).time.value()});
  }
  return fit;
}

}  // namespace stepcast
