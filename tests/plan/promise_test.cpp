#include "stepcast/plan/promise.h"

#include <cmath>

#include <gtest/gtest.h>

namespace stepcast::promise_test {
namespace {

// ln of 1, 2 and 4 is 0, 1 and 2 times ln 2: a standard deviation of ln 2 about the middle one.
TEST(Promise, FitsTheMedianAndTheSpreadOfLogarithms) {
  const PromisePrior prior = fit_promise({4, 1, 2});
  EXPECT_NEAR(prior.median, 2, 1e-12);
  EXPECT_NEAR(prior.spread, std::log(2), 1e-12);
  EXPECT_EQ(fit_promise({3}).median, 1);  // one value has no spread: nothing is promised of it
}

TEST(Promise, TakesTheWiderOfBothBands) {
  const Estimate forecast{Microseconds{100}, Microseconds{50}, Microseconds{110}, EstimateSource::fitted};
  const Estimate promise = promised(forecast, {.median = 1.5, .spread = std::log(2) / 1.2816});
  EXPECT_NEAR(promise.time.value(), 150, 1e-9);
  EXPECT_NEAR(promise.p10.value(), 75, 1e-9);   // both say half
  EXPECT_NEAR(promise.p90.value(), 300, 1e-9);  // the prior's factor of 2, above the forecast's 1.1
  EXPECT_EQ(promise.source, EstimateSource::fitted);
}

TEST(Promise, OfDenseModelsAndOfGivenLayoutsIsTheForecast) {
  EXPECT_EQ(promise_prior(true, LayoutOrigin::given).median, 1);
  EXPECT_GT(promise_prior(true, LayoutOrigin::searched).median, 1);
  const Estimate forecast{Microseconds{100}, Microseconds{90}, Microseconds{120}, EstimateSource::fitted};
  const Estimate promise = promised(forecast, promise_prior(false, LayoutOrigin::searched));
  EXPECT_EQ(promise.time, forecast.time);
  EXPECT_NEAR(promise.p90.value(), 120, 1e-9);
}

}  // namespace
}  // namespace stepcast::promise_test
