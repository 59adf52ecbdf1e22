#include "calibrate/detail/startup_fit.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>
#include <vector>

#include "calibrate/detail/minimization.h"

namespace stepcast::detail {
namespace {

// Chosen by cross-validation over the curves of docs/collectives.md (whole octaves held out).
constexpr double kFormNoise = 0.01;      // relative to the preferences for parameters below
constexpr double kRobustStartup = 0.03;  // larger residuals count linearly
// Iterations from a form that fits all points except those of one octave. More change no band by a tenth of a percent.
constexpr int kIterationsFromNear = 8;

StartupForm form_of(std::span<const double> p, double factor) {
  StartupForm form{.ln_startup_us = p[0],
                   .ln_max_GBps = p[1],
                   .d1 = p[2],
                   .x1 = p[3],
                   .k = p[4],
                   .ln_q = p[5],
                   .d2 = p[6],
                   .x2 = p[7],
                   .factor = factor};
  return form;
}

struct Sizes {
  double low = 0, high = 0;  // log2 of the bytes
};

// `ln_fastest`: the least time; `ln_bus`: the best bandwidth.
LeastSquares startup_problem(std::span<const CurvePoint> points, double factor, Sizes x, double ln_fastest,
                             double ln_bus) {
  LeastSquares problem;
  // Priors keep parameters in place that few points determine. Physical limits: no message is faster than the start-up, and
  // the bandwidth limit is near the best measured one.
  // startup,          bandwidth,      d1, x1,                 k,    ln q,          d2,  x2
  problem.centre = {ln_fastest, ln_bus + 0.02, 0.7, (x.low + x.high) / 2,
                    0.7,        std::log(1.4), 0.2, (x.low + x.high) / 2 + 2};
  problem.spread = {1.5, 0.5, 1.0, 6.0, 0.7, 0.5, 0.5, 6.0};
  problem.low = {-3.0, ln_bus - 3, 0.0, x.low - 3, 0.05, std::log(0.6), 0.0, x.low - 3};
  problem.high = {ln_fastest + 0.3, ln_bus + 0.15, 8.0, x.high + 3, 3.0, std::log(4.0), 6.0, x.high + 3};
  problem.low[0] = std::min(problem.low[0], ln_fastest - 1);
  problem.robust_scale = kRobustStartup;
  double sum = 0;
  for (const CurvePoint& p : points) {
    problem.weights.push_back(std::sqrt(std::min(p.weight, kMaxRepeatWeight)));
    sum += problem.weights.back();
  }
  for (double& w : problem.weights) w *= static_cast<double>(points.size()) / sum / kFormNoise;
  problem.residuals = [points, factor](std::span<const double> p, std::span<double> r) {
    const StartupForm form = form_of(p, factor);
    for (std::size_t i = 0; i < points.size(); ++i) r[i] = form.ln_time_us(points[i].x) - points[i].y;
  };
  return problem;
}

}  // namespace

StartupForm fit_startup_points(std::span<const CurvePoint> points, double factor, const StartupForm* near) {
  double x_min = points.front().x, x_max = points.front().x, ln_fastest = points.front().y, ln_bus = -1e300;
  for (const CurvePoint& p : points) {
    x_min = std::min(x_min, p.x);
    x_max = std::max(x_max, p.x);
    ln_fastest = std::min(ln_fastest, p.y);
    ln_bus = std::max(ln_bus, std::log(factor / 1000) + p.x * std::numbers::ln2 - p.y);
  }
  LeastSquares problem = startup_problem(points, factor, {x_min, x_max}, ln_fastest, ln_bus);
  if (near != nullptr) {
    std::vector<double> p = {near->ln_startup_us, near->ln_max_GBps, near->d1, near->x1, near->k,
                             near->ln_q,          near->d2,          near->x2};
    for (std::size_t i = 0; i < p.size(); ++i) p[i] = std::clamp(p[i], problem.low[i], problem.high[i]);
    problem.max_iterations = kIterationsFromNear;
    problem.minimise(p);
    return form_of(p, factor);
  }
  // Several starts, because the two steps of the bandwidth may be anywhere. The most promising ones are followed.
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
  std::ranges::stable_sort(starts, [](const auto& a, const auto& b) { return a.first < b.first; });
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

}  // namespace stepcast::detail
