#include "calibrate/curve_form_fit.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "stepcast/base/statistics.h"

#include "calibrate/detail/curve_points.h"
#include "calibrate/detail/least_squares.h"
#include "calibrate/detail/startup_fit.h"

namespace stepcast {
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
