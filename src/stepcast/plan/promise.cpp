#include "stepcast/plan/promise.h"

#include <algorithm>
#include <cmath>

#include "stepcast/base/statistics.h"

namespace stepcast {
namespace {

// Fitted to the families scored by `plan_promise` of `validate iterations` (docs/constants.md). Dense layouts need no factor:
// the fastest published step of all 50 families took 0.9 to 1.2 times the forecast of the plan.
constexpr PromisePrior kOfExperts{1.53, 0.2};
constexpr double kTenthOfNormal = 1.2816;  // standard deviations between the median and p10 or p90

}  // namespace

PromisePrior fit_promise(const std::vector<double>& measured_over_forecast) {
  // Too few ratios for a spread: the neutral factor.
  if (measured_over_forecast.size() < 2) return {};
  double sum = 0, squares = 0;
  for (const double ratio : measured_over_forecast) {
    sum += std::log(ratio);
    squares += std::log(ratio) * std::log(ratio);
  }
  const auto n = static_cast<double>(measured_over_forecast.size());
  return {median(measured_over_forecast), std::sqrt(std::max(0.0, (squares - sum * sum / n) / (n - 1)))};
}

PromisePrior promise_prior(bool has_experts, LayoutOrigin origin) {
  return has_experts && origin == LayoutOrigin::searched ? kOfExperts : PromisePrior{};
}

Estimate promised(const Estimate& forecast, const PromisePrior& prior) {
  // Each side of the band is the wider one of the forecast band and the spread of the factor.
  const double time = forecast.time.value(), wide = std::exp(kTenthOfNormal * prior.spread);
  const double low = std::min(forecast.p10.value() / time, 1 / wide);
  const double high = std::max(forecast.p90.value() / time, wide);
  const double promise = time * prior.median;
  return {Microseconds{promise}, Microseconds{promise * low}, Microseconds{promise * high}, forecast.source};
}

}  // namespace stepcast
