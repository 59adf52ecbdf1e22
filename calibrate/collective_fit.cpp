#include "calibrate/collective_fit.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "stepcast/base/statistics.h"

#include "calibrate/detail/curve_band.h"
#include "calibrate/detail/minimization.h"
#include "calibrate/detail/residual_smoother.h"
#include "calibrate/detail/startup_fit.h"

namespace stepcast {

namespace {

// Curves of dtypes with a smaller difference are joined into one, ln.
constexpr double kDtypeDiffers = 0.03;

// Rounds to six digits: more than the precision of any measurement, and files stay short.
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

// Knots at powers of two, where most measurements are, at most as many as a shipped file may have.
std::vector<double> knot_grid(double x_min, double x_max) {
  double step = 0.25;
  while (std::floor((x_max - x_min) / step) + 3 > static_cast<double>(kMaxShippedKnots)) step *= 2;
  std::vector<double> grid{x_min};
  for (double x = std::ceil(x_min / step + 0.01) * step; x < x_max - 0.01 * step; x += step)
    grid.push_back(x);
  if (x_max > x_min) grid.push_back(x_max);
  return grid;
}

// Adds the errors of the fitted curves on the samples.
void add_errors(std::span<const CollectiveSample> samples, double outlier_ln, CollectiveFit& fit) {
  std::vector<double> errors;
  double form_error = 0;
  std::map<double, std::vector<double>> by_size;
  for (const CollectiveSample& s : samples) {
    const double fitted = fit.curve(s.dtype).at(Bytes{s.message_bytes}).time.value();
    errors.push_back(100 * std::abs(fitted - s.time_us) / s.time_us);
    form_error += 100 * std::abs(fit.form.time(Bytes{s.message_bytes}).value() - s.time_us) / s.time_us;
    if (std::abs(std::log(fitted / s.time_us)) > outlier_ln) ++fit.n_outliers;
    by_size[s.message_bytes].push_back(s.time_us);
  }
  const auto n = static_cast<double>(errors.size());
  for (const double e : errors) fit.mape_pct += e / n;
  fit.form_mape_pct = form_error / n;
  std::ranges::sort(errors);
  fit.p90_ape_pct = errors[static_cast<std::size_t>(0.9 * (n - 1))];
  for (auto& [bytes, times] : by_size)
    fit.points.push_back({bytes, median(std::move(times)), fit.curve().at(Bytes{bytes}).time.value()});
}

}  // namespace

std::string measuring_command(CollectiveOp op, std::uint32_t n_nodes, std::uint32_t gpus_per_node) {
  std::string_view program = to_string(op);
  if (op == CollectiveOp::all_to_all) program = "alltoall";
  if (op == CollectiveOp::send_receive) program = "sendrecv";
  if (n_nodes <= 1) return fmt::format("{}_perf -b 8 -e 4G -f 2 -g {}", program, gpus_per_node);
  return fmt::format("mpirun -np {} -N {} {}_perf -b 8 -e 4G -f 2 -g 1", n_nodes * gpus_per_node,
                     gpus_per_node, program);
}

const TimeCurve& CollectiveFit::curve(DType dtype) const {
  for (const Fitted& f : fitted_)
    if (f.dtype == dtype && dtype != DType::unknown) return f.curve;
  return fitted_.front().curve;
}

std::vector<CollectiveCurve> CollectiveFit::records(const Provenance& provenance) const {
  std::vector<CollectiveCurve> result;
  for (const Fitted& f : fitted_) {
    if (f.dtype != DType::unknown) {
      double largest = 0;
      for (std::size_t i = 0; i < f.knots_log2.size(); ++i)
        largest = std::max(largest, std::abs(f.knots_ln_us[i] - fitted_.front().knots_ln_us[i]));
      if (fitted_.size() == 2 || largest < kDtypeDiffers) continue;
    }
    CollectiveCurve record{.collective = collective_,
                           .dtype = f.dtype,
                           .n_nodes = n_nodes_,
                           .gpus_per_node = gpus_per_node_,
                           .n_ranks = n_ranks_};
    CurveFit& fit = record.fit.edit();
    fit.published = published.record();
    fit.improved = form.record();
    for (std::size_t i = 0; i < f.knots_log2.size(); ++i)
      fit.knots.push_back({std::round(std::exp2(f.knots_log2[i])), rounded(std::exp(f.knots_ln_us[i]))});
    for (CurveForm* curve_form : {&fit.published, &fit.improved})
      for (auto& [parameter, value] : curve_form->parameters) value = rounded(value);
    fit.residuals = residuals_;
    for (ResidualQuantiles& q : fit.residuals) {
      q.message_bytes_min = std::round(q.message_bytes_min);
      q.message_bytes_max = std::round(q.message_bytes_max);
      for (double* v : {&q.log_p10, &q.log_p50, &q.log_p90}) *v = std::round(*v * 1e5) / 1e5;
    }
    fit.provenance = provenance;
    fit.provenance.source = FigureSource::fitted;
    fit.provenance.n_rows = n_samples;
    fit.provenance.error = {{"mape_pct", rounded(mape_pct)},
                            {"p90_ape_pct", rounded(p90_ape_pct)},
                            {"form_mape_pct", rounded(form_mape_pct)}};
    fit.provenance.range = {{"message_bytes_min", std::round(std::exp2(measured_from))},
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
  for (const CollectiveSample& s : samples)
    if (std::ranges::find(dtypes, s.dtype) == dtypes.end()) dtypes.push_back(s.dtype);
  std::ranges::sort(dtypes);
  const std::vector<detail::CurvePoint> points =
      detail::join_samples(samples, detail::kResidualBinsPerOctave, dtypes);
  std::vector<double> over;
  for (const detail::CurvePoint& p : points) over.push_back(p.y - fit.form.ln_time_us(p.x));
  const detail::ResidualSmoother smoother{points, over, dtypes.size() > 1};

  double x_min = points.front().x, x_max = x_min;
  for (const CollectiveSample& s : samples) {
    x_min = std::min(x_min, std::log2(s.message_bytes));
    x_max = std::max(x_max, std::log2(s.message_bytes));
  }
  fit.measured_from = x_min;
  fit.measured_to = x_max;
  fit.residuals_ = detail::left_out_band({.samples = samples,
                                          .dtypes = dtypes,
                                          .points = points,
                                          .smoother = smoother,
                                          .form = fit.form,
                                          .factor = factor});

  const std::vector<double> grid = knot_grid(x_min, x_max);
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
  add_errors(samples, options.outlier_ln, fit);
  return fit;
}

StartupForm fit_startup_form(std::span<const CollectiveSample> samples, double factor) {
  return detail::fit_startup_points(detail::join_samples(samples, detail::kFormBinsPerOctave, {}), factor);
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
  SigmoidForm form{.factor = factor};
  form.max_bandwidth_GBps = *std::ranges::max_element(bandwidth);
  // m2: from the largest size down to the first with less than 95 % of the best bandwidth, then two sizes up.
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
  if (x.size() < 4) {  // four parameters need four points; with fewer, the bandwidth is constant
    double mean = 0;
    for (const double v : y) mean += v / static_cast<double>(y.size());
    form.b = y.empty() ? std::log10(form.max_bandwidth_GBps) : mean;
    return form;
  }
  detail::LeastSquares problem;
  std::vector<double> p = {x.back(), median(x), 1, *std::ranges::min_element(y)};
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

}  // namespace stepcast
