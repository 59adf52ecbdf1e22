#include "stepcast/cost/collective_curve.h"

#include <algorithm>
#include <numbers>
#include <utility>
#include <vector>

#include <fmt/format.h>

// Curve forms, their conversion into tables, and the monotone interpolation that the tables use.

namespace stepcast {
namespace {

constexpr double kLn2 = std::numbers::ln2;

// Widening of the band per octave beyond the measured sizes, in ln, on both sides. From held-out end octaves
// of the curves in docs/collectives.md: their median error is three times that of octaves between measured
// ones.
constexpr double kWideningPerOctave = 0.04;
// Half-width of the band, in ln, of a record without residuals. Assumed.
constexpr double kUnknownBand = 0.30;

// The named parameter of a form. Error: it is missing.
Result<double> parameter(const CurveForm& form, std::string_view name) {
  const auto it = form.parameters.find(name);
  if (it == form.parameters.end())
    return Error{fmt::format("the curve form '{}' lacks the parameter '{}'", form.form, name)};
  return it->second;
}

}  // namespace

double bus_factor(CollectiveOp op, std::uint32_t n_ranks) {
  const double n = std::max<double>(n_ranks, 1);
  switch (op) {
    case CollectiveOp::all_reduce: return 2 * (n - 1) / n;
    case CollectiveOp::all_gather:
    case CollectiveOp::reduce_scatter:
    case CollectiveOp::all_to_all:
    case CollectiveOp::gather:
    case CollectiveOp::scatter: return (n - 1) / n;
    default: return 1;
  }
}

double ring_steps(CollectiveOp op, std::uint32_t n_ranks) {
  const double n = std::max<double>(n_ranks, 1);
  return op == CollectiveOp::all_reduce ? 2 * (n - 1) : n - 1;
}

Microseconds SigmoidForm::time(Bytes message) const {
  const double x = std::log2(message.value());
  if (x <= log2_m1) return Microseconds{startup_us};
  const double GBps =
      x <= log2_m2 ? std::pow(10.0, A / (1 + std::exp(-k * (x - x0))) + b) : max_bandwidth_GBps;
  const double transfer_us = factor * message.value() / (1000 * GBps);
  return Microseconds{x <= log2_m2 ? transfer_us : startup_us + transfer_us};
}

CurveForm SigmoidForm::record() const {
  return {"three_region_sigmoid",
          {{"log2_m1", log2_m1},
           {"log2_m2", log2_m2},
           {"BWmax_GBps", max_bandwidth_GBps},
           {"t_s_us", startup_us},
           {"A", A},
           {"x0", x0},
           {"k", k},
           {"b", b}}};
}

Result<SigmoidForm> SigmoidForm::from(const CurveForm& record, double factor) {
  if (record.form != "three_region_sigmoid")
    return Error{"the curve form"}.found(record.form).expected("three_region_sigmoid");
  SigmoidForm form;
  form.factor = factor;
  STEPCAST_ASSIGN(form.log2_m1, parameter(record, "log2_m1"));
  STEPCAST_ASSIGN(form.log2_m2, parameter(record, "log2_m2"));
  STEPCAST_ASSIGN(form.max_bandwidth_GBps, parameter(record, "BWmax_GBps"));
  STEPCAST_ASSIGN(form.startup_us, parameter(record, "t_s_us"));
  STEPCAST_ASSIGN(form.A, parameter(record, "A"));
  STEPCAST_ASSIGN(form.x0, parameter(record, "x0"));
  STEPCAST_ASSIGN(form.k, parameter(record, "k"));
  STEPCAST_ASSIGN(form.b, parameter(record, "b"));
  return form;
}

// Computed in ln throughout: log-sum-exp of the two terms, so that large exponents q do not overflow.
double StartupForm::ln_time_us(double log2_bytes) const {
  const double ln_bandwidth =
      ln_max_GBps - d1 / (1 + std::exp(k * (log2_bytes - x1))) - d2 / (1 + std::exp(k * (log2_bytes - x2)));
  const double ln_transfer = std::log(factor / 1000) + log2_bytes * kLn2 - ln_bandwidth;
  const double q = std::exp(ln_q);
  const double a = q * ln_startup_us, b = q * ln_transfer;
  const double larger = std::max(a, b);
  return (larger + std::log1p(std::exp(std::min(a, b) - larger))) / q;
}

CurveForm StartupForm::record() const {
  return {"startup_two_steps",
          {{"t_s_us", std::exp(ln_startup_us)},
           {"BWmax_GBps", std::exp(ln_max_GBps)},
           {"d1", d1},
           {"x1", x1},
           {"k", k},
           {"q", std::exp(ln_q)},
           {"d2", d2},
           {"x2", x2}}};
}

Result<StartupForm> StartupForm::from(const CurveForm& record, double factor) {
  if (record.form != "startup_two_steps")
    return Error{"the curve form"}.found(record.form).expected("startup_two_steps");
  StartupForm form;
  form.factor = factor;
  STEPCAST_ASSIGN(const double startup, parameter(record, "t_s_us"));
  STEPCAST_ASSIGN(const double bandwidth, parameter(record, "BWmax_GBps"));
  STEPCAST_ASSIGN(const double q, parameter(record, "q"));
  if (!(startup > 0) || !(bandwidth > 0) || !(q > 0))
    return Error{"t_s_us, BWmax_GBps and q of a curve form must be positive"};
  form.ln_startup_us = std::log(startup);
  form.ln_max_GBps = std::log(bandwidth);
  form.ln_q = std::log(q);
  STEPCAST_ASSIGN(form.d1, parameter(record, "d1"));
  STEPCAST_ASSIGN(form.x1, parameter(record, "x1"));
  STEPCAST_ASSIGN(form.k, parameter(record, "k"));
  STEPCAST_ASSIGN(form.d2, parameter(record, "d2"));
  STEPCAST_ASSIGN(form.x2, parameter(record, "x2"));
  return form;
}

TimeCurve::TimeCurve(const Table& time, const Table& low, const Table& high)
    : time_(time), low_(low), high_(high) {
  for (std::size_t i = 0; i < kPoints; ++i) {
    low_[i] = std::min(low_[i], time_[i]);
    high_[i] = std::max(high_[i], time_[i]);
  }
}

double TimeCurve::ln_time_us(double log2_bytes) const {
  const double position = std::clamp(log2_bytes / kStep, 0.0, static_cast<double>(kPoints - 1));
  const auto i = std::min(static_cast<std::size_t>(position), kPoints - 2);
  const double share = position - static_cast<double>(i);
  return time_[i] + share * (time_[i + 1] - time_[i]);
}

Estimate TimeCurve::at(Bytes message) const {
  const double x = message.value() > 1 ? std::log2(message.value()) : 0;
  const double position = std::min(x / kStep, static_cast<double>(kPoints - 1));
  const auto i = std::min(static_cast<std::size_t>(position), kPoints - 2);
  const double share = position - static_cast<double>(i);
  const auto value = [&](const Table& table) {
    return Microseconds{std::exp(table[i] + share * (table[i + 1] - table[i]))};
  };
  Estimate estimate{value(time_), value(low_), value(high_), source};
  if (x < supported_from - 1e-9 || x > supported_to + 1e-9) estimate.source = weaker(source, outside_source);
  return estimate;
}

void make_non_decreasing(std::span<double> values) {
  // Pool adjacent violators: blocks of equal value; the value of a block is the mean of its points.
  struct Block {
    double sum;
    std::size_t n;
    [[nodiscard]] double mean() const { return sum / static_cast<double>(n); }
  };
  std::vector<Block> blocks;
  for (const double v : values) {
    blocks.push_back({v, 1});
    while (blocks.size() > 1 && blocks[blocks.size() - 2].mean() > blocks.back().mean()) {
      const Block last = blocks.back();
      blocks.pop_back();
      blocks.back().sum += last.sum;
      blocks.back().n += last.n;
    }
  }
  std::size_t i = 0;
  for (const Block& block : blocks)
    for (std::size_t k = 0; k < block.n; ++k) values[i++] = block.mean();
}

// Slopes by the weighted harmonic mean of Fritsch and Butland; zero at extrema, which prevents overshoot.
MonotoneCubic::MonotoneCubic(std::vector<double> x, std::vector<double> y)
    : x_(std::move(x)), y_(std::move(y)), slope_(x_.size(), 0.0) {
  const std::size_t n = x_.size();
  if (n < 2) return;
  std::vector<double> secant(n - 1);
  for (std::size_t i = 0; i + 1 < n; ++i) secant[i] = (y_[i + 1] - y_[i]) / (x_[i + 1] - x_[i]);
  slope_.front() = secant.front();
  slope_.back() = secant.back();
  for (std::size_t i = 1; i + 1 < n; ++i) {
    if (secant[i - 1] * secant[i] <= 0) continue;
    const double left = x_[i] - x_[i - 1], right = x_[i + 1] - x_[i];
    const double w1 = 2 * right + left, w2 = right + 2 * left;
    slope_[i] = (w1 + w2) / (w1 / secant[i - 1] + w2 / secant[i]);
  }
}

double MonotoneCubic::at(double x) const {
  if (x <= x_.front()) return y_.front();
  if (x >= x_.back()) return y_.back();
  const auto after = std::upper_bound(x_.begin(), x_.end(), x);
  const auto i = static_cast<std::size_t>(after - x_.begin()) - 1;
  const double h = x_[i + 1] - x_[i], t = (x - x_[i]) / h;
  const double t2 = t * t, t3 = t2 * t;
  return (2 * t3 - 3 * t2 + 1) * y_[i] + (t3 - 2 * t2 + t) * h * slope_[i] + (3 * t2 - 2 * t3) * y_[i + 1] +
         (t3 - t2) * h * slope_[i + 1];
}

TimeCurve time_curve(const CurveParts& parts) {
  TimeCurve::Table time{}, low{}, high{};
  const bool has_knots = !parts.log2_knots.empty();
  const double first = has_knots ? parts.log2_knots.front() : 0,
               last = has_knots ? parts.log2_knots.back() : 0;
  const auto cubic = has_knots ? MonotoneCubic{parts.log2_knots, parts.ln_time_us} : MonotoneCubic{{0}, {0}};
  // Beyond the knots the form continues from the end knot, clamped so that the time neither falls with the
  // size nor grows faster than the size.
  const auto beyond = [&](double x, double end, double ln_end) {
    double step = x > end ? (x - end) * kLn2 : 0;
    if (parts.form != nullptr) step = parts.form->ln_time_us(x) - parts.form->ln_time_us(end);
    const double most = (x - end) * kLn2;
    return ln_end + std::clamp(step, std::min(most, 0.0), std::max(most, 0.0));
  };
  for (std::size_t i = 0; i < TimeCurve::kPoints; ++i) {
    const double x = TimeCurve::log2_bytes(i);
    if (!has_knots)
      time[i] = parts.form->ln_time_us(x);
    else if (x < first)
      time[i] = beyond(x, first, parts.ln_time_us.front());
    else if (x > last)
      time[i] = beyond(x, last, parts.ln_time_us.back());
    else
      time[i] = cubic.at(x);
  }
  make_non_decreasing(time);

  // The band: residual quantiles by range of sizes, linear between the middles of the ranges.
  std::vector<double> middle, p10, p90;
  for (const ResidualQuantiles& r : parts.residuals) {
    if (!(r.message_bytes_min > 0) || !(r.message_bytes_max >= r.message_bytes_min)) continue;
    const double m = 0.5 * (std::log2(r.message_bytes_min) + std::log2(r.message_bytes_max));
    if (!middle.empty() && m <= middle.back()) continue;
    middle.push_back(m);
    p10.push_back(r.log_p10);
    p90.push_back(r.log_p90);
  }
  if (middle.empty()) {
    middle = {0};
    p10 = {-kUnknownBand};
    p90 = {kUnknownBand};
  }
  for (std::size_t i = 0; i < TimeCurve::kPoints; ++i) {
    const double x = TimeCurve::log2_bytes(i);
    const auto after = std::upper_bound(middle.begin(), middle.end(), x);
    const auto hi = std::min(static_cast<std::size_t>(after - middle.begin()), middle.size() - 1);
    const std::size_t lo = after == middle.begin() ? 0 : static_cast<std::size_t>(after - middle.begin()) - 1;
    const double share = hi == lo ? 0 : (x - middle[lo]) / (middle[hi] - middle[lo]);
    const double outside = std::max({0.0, parts.measured_from - x, x - parts.measured_to});
    low[i] = time[i] + p10[lo] + share * (p10[hi] - p10[lo]) - kWideningPerOctave * outside;
    high[i] = time[i] + p90[lo] + share * (p90[hi] - p90[lo]) + kWideningPerOctave * outside;
  }
  TimeCurve curve{time, low, high};
  curve.supported_from = parts.measured_from;
  curve.supported_to = parts.measured_to;
  return curve;
}

Result<TimeCurve> time_curve(const CollectiveCurve& record) {
  const CurveFit& fit = *record.fit;
  CurveParts parts;
  for (const CurveKnot& knot : fit.knots) {
    if (!(knot.message_bytes > 0) || !(knot.time_us > 0))
      return Error{fmt::format("curve {}: knots need positive sizes and times", record.key())};
    const double x = std::log2(knot.message_bytes);
    if (!parts.log2_knots.empty() && x <= parts.log2_knots.back())
      return Error{fmt::format("curve {}: the sizes of the knots must increase", record.key())};
    parts.log2_knots.push_back(x);
    parts.ln_time_us.push_back(std::log(knot.time_us));
  }
  StartupForm form;
  if (fit.improved.form == "startup_two_steps") {
    STEPCAST_ASSIGN(form, StartupForm::from(fit.improved, bus_factor(record.collective, record.n_ranks)));
    parts.form = &form;
  }
  if (parts.log2_knots.empty() && parts.form == nullptr)
    return Error{fmt::format("curve {} has neither knots nor a form 'startup_two_steps'", record.key())};
  parts.residuals = fit.residuals;
  // End of the measured range by `key` of the provenance, in log2 bytes, else `otherwise`.
  const auto range = [&](std::string_view key, double otherwise) {
    const auto it = fit.provenance.range.find(key);
    return it != fit.provenance.range.end() && it->second > 0 ? std::log2(it->second) : otherwise;
  };
  const bool has_knots = !parts.log2_knots.empty();
  parts.measured_from = range("message_bytes_min", has_knots ? parts.log2_knots.front() : 0);
  parts.measured_to = range("message_bytes_max", has_knots ? parts.log2_knots.back() : 40);
  TimeCurve curve = time_curve(parts);
  if (fit.provenance.source == FigureSource::assumed)
    curve.source = curve.outside_source = EstimateSource::assumed;
  else if (fit.provenance.source == FigureSource::measured)
    curve.source = EstimateSource::measured;
  else if (fit.provenance.source == FigureSource::data_sheet)
    curve.source = curve.outside_source = EstimateSource::analytic;
  return curve;
}

}  // namespace stepcast
