// Forecasts that measured steps anchor, through a Session.
#include <cmath>
#include <filesystem>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stepcast/api/stepcast.h"

#include "tests/support/fails_with.h"
#include "tests/support/paths.h"

namespace stepcast::anchored_session_test {
namespace {

using test::FailsWith;
using ::testing::Contains;
using ::testing::HasSubstr;

PredictRequest request() {
  PredictRequest request{.job = {.model = "llama-3-8b", .n_gpus = 64}};
  request.job.settings.tensor = 2;
  request.job.settings.pipeline = 2;
  request.job.settings.distributed_optimizer = true;
  request.job.settings.global_batch_sequences = 256;
  return request;
}

Forecast predicted(const PredictRequest& request) {
  Result<Forecast> forecast = Session{}.predict(request);
  EXPECT_TRUE(forecast.ok()) << forecast.error().message();
  return forecast.ok() ? std::move(*forecast) : Forecast{};
}

TEST(AnchoredSession, SaysWhatAMeasuredStepExplains) {
  const Forecast before = predicted(request());
  EXPECT_FALSE(before.anchor);
  PredictRequest anchored = request();
  anchored.measured = {std::to_string(1.2 * before.step_time_ms)};
  const Forecast after = predicted(anchored);
  ASSERT_TRUE(after.anchor);
  EXPECT_NEAR(after.anchor->step_time_ms, before.step_time_ms, 1e-9 * before.step_time_ms);
  EXPECT_NEAR(after.step_time_ms, before.step_time_ms * after.anchor->factor, 1e-3 * before.step_time_ms);
  EXPECT_GT(after.anchor->factor, 1.1);
  EXPECT_LT(after.anchor->factor, 1.2);
  ASSERT_EQ(after.anchor->measured.size(), 1U);
  EXPECT_NEAR(after.anchor->factor * after.anchor->measured[0].own_factor, 1.2, 1e-6);
  EXPECT_LT(after.step_time_p90_ms / after.step_time_p10_ms,
            before.step_time_p90_ms / before.step_time_p10_ms);
  EXPECT_THAT(after.notes, Contains(HasSubstr("anchored on a measured step (64 GPUs")));
}

// The batch doubles, the factor nearly stays.
TEST(AnchoredSession, CarriesOverToNeighbours) {
  PredictRequest anchored = request();
  const double before = predicted(request()).step_time_ms;
  anchored.job.settings.global_batch_sequences = 512;
  const double other = predicted(anchored).step_time_ms;
  anchored.measured = {"gbs=256=" + std::to_string(1.2 * before)};
  const Forecast after = predicted(anchored);
  EXPECT_GT(after.step_time_ms / other, 1.1);
  EXPECT_LT(after.step_time_ms / other, 1.2);
}

// Ten steps in one time: neither the forecast of the job nor that of a neighbour moves.
TEST(AnchoredSession, LeavesTimesOfOtherUnitsOut) {
  const Forecast before = predicted(request());
  PredictRequest anchored = request();
  anchored.measured = {std::to_string(10 * before.step_time_ms)};
  const Forecast after = predicted(anchored);
  EXPECT_FALSE(after.anchor);
  EXPECT_EQ(after.step_time_ms, before.step_time_ms);
  EXPECT_THAT(after.notes, Contains(HasSubstr("is not used: the time is that of ten steps")));
  ASSERT_TRUE(after.measured_check);
  EXPECT_EQ(after.measured_check->verdict, "slow");

  anchored.measured.push_back(std::to_string(1.2 * before.step_time_ms));
  const Forecast with_both = predicted(anchored);
  ASSERT_TRUE(with_both.anchor);
  EXPECT_EQ(with_both.anchor->measured.size(), 1U);
}

TEST(AnchoredSession, ALogAnchorsAnotherLayoutByItself) {
  PredictLogRequest log{.log = test::source_dir() / "tests/golden/logs/train.log"};
  log.request.platform = "dgx-h100";
  log.request.job.n_gpus = 128;
  const Result<PredictedLog> anchored = Session{}.predict(log);
  ASSERT_TRUE(anchored.ok()) << anchored.error().message();
  ASSERT_TRUE(anchored->forecast.anchor);
  EXPECT_EQ(anchored->forecast.n_gpus, 128U);
  EXPECT_GT(anchored->forecast.anchor->factor, 1);
  EXPECT_NEAR(anchored->forecast.anchor->measured.front().measured_ms, 2129.8, 0.1);
  log.anchors = false;
  const Result<PredictedLog> as_it_is = Session{}.predict(log);
  ASSERT_TRUE(as_it_is.ok()) << as_it_is.error().message();
  EXPECT_FALSE(as_it_is->forecast.anchor);
}

MeasuredCheck checked(double measured_ms) {
  PredictRequest measured = request();
  measured.measured = {std::to_string(measured_ms)};
  const Forecast forecast = predicted(measured);
  EXPECT_TRUE(forecast.measured_check);
  return forecast.measured_check.value_or(MeasuredCheck{});
}

TEST(MeasuredCheck, IsNormalWithinTheBandAndNamesWhatExplainsTheRest) {
  const Forecast plain = predicted(request());
  EXPECT_FALSE(plain.measured_check);
  const MeasuredCheck normal = checked(1.02 * plain.step_time_ms);
  EXPECT_EQ(normal.verdict, "normal");
  EXPECT_NEAR(normal.measured_over_forecast, 1.02, 1e-6);
  EXPECT_EQ(normal.forecast_p90_ms, plain.step_time_p90_ms);
  EXPECT_TRUE(normal.causes.empty());
  EXPECT_EQ(checked(1.01 * plain.step_time_p90_ms).verdict, "slow");
  EXPECT_EQ(checked(0.99 * plain.step_time_p10_ms).verdict, "fast");

  PredictRequest recomputed = request();
  recomputed.job.settings.recompute = Recompute::full;
  const double as_it_ran = predicted(recomputed).step_time_ms;
  const MeasuredCheck slow = checked(as_it_ran);
  EXPECT_EQ(slow.verdict, "slow");
  ASSERT_FALSE(slow.causes.empty());
  EXPECT_EQ(slow.causes.front().what, "all activations are recomputed");
  EXPECT_NEAR(slow.causes.front().step_time_ms, as_it_ran, 0.01 * as_it_ran);  // the rest is searched anew
  EXPECT_THAT(slow.sentence, HasSubstr("all activations are recomputed"));
  double sum = 0;
  for (const MeasuredCause& cause : slow.causes) sum += cause.likelihood;
  EXPECT_LE(sum, 1 + 1e-9);

  const MeasuredCheck ten = checked(10 * plain.step_time_ms);
  ASSERT_FALSE(ten.causes.empty());
  EXPECT_EQ(ten.causes.front().what, "the time is that of ten steps");
}

// Of another layout it is an anchor, and no answer about this one.
TEST(MeasuredCheck, IsOfTheVeryJobAlone) {
  PredictRequest other = request();
  other.measured = {"gbs=128=2s"};
  const Forecast forecast = predicted(other);
  ASSERT_TRUE(forecast.anchor);
  EXPECT_EQ(forecast.anchor->measured.front().measured_ms, 2000);
  EXPECT_FALSE(forecast.measured_check);
}

TEST(MeasuredCheck, NamesTheNearestPublishedRuns) {
  const MeasuredCheck check = checked(1000);
  ASSERT_TRUE(check.nearest_published);
  const PublishedRuns& nearest = *check.nearest_published;
  EXPECT_EQ(nearest.gpu, "H100-SXM5-80GB");
  EXPECT_LE(nearest.min_measured_over_forecast, nearest.measured_over_forecast);
  EXPECT_LE(nearest.measured_over_forecast, nearest.max_measured_over_forecast);
  EXPECT_LE(nearest.distance, 1.5);
  EXPECT_THAT(nearest.differs, HasSubstr("framework"));
}

// The median step of the record, which is 5,000 times as fast as this job.
TEST(MeasuredCheck, TakesRecordedTraces) {
  PredictRequest measured = request();
  measured.measured = {(test::source_dir() / "examples" / "dlrm_4gpu").string()};
  EXPECT_THAT(Session{}.predict(measured), FailsWith("8.63 ms"));
}

TEST(MeasuredCheck, IsMadeOfEveryLog) {
  PredictLogRequest log{.log = test::source_dir() / "tests/golden/logs/train.log"};
  log.request.platform = "dgx-h100";
  const Result<PredictedLog> predicted = Session{}.predict(log);
  ASSERT_TRUE(predicted.ok()) << predicted.error().message();
  ASSERT_TRUE(predicted->forecast.measured_check);
  const MeasuredCheck& check = *predicted->forecast.measured_check;
  EXPECT_NEAR(check.measured_ms, 2129.8, 0.1);
  EXPECT_EQ(check.forecast_ms, predicted->forecast.step_time_ms);
}

TEST(AnchoredSession, RefusesInOneLineWhatCannotBeAnAnchor) {
  PredictRequest anchored = request();
  anchored.measured = {"gpus=64 tp=3=4120"};
  EXPECT_THAT(Session{}.predict(anchored), FailsWith("tensor"));
  anchored.measured = {"0.41"};
  EXPECT_THAT(Session{}.predict(anchored), FailsWith("check its unit"));
  anchored.measured = {"4120"};
  anchored.pools = "64xh100+64xa100";
  EXPECT_THAT(Session{}.predict(anchored), FailsWith("one platform"));
}

}  // namespace
}  // namespace stepcast::anchored_session_test
