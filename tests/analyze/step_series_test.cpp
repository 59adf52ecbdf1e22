#include "stepcast/analyze/step_series.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/two_recorded_ranks.h"

namespace stepcast::step_series_test {
namespace {

StepSample step_of(std::int64_t number, double ms) {
  StepSample sample;
  sample.step = number;
  sample.ranks.resize(1);
  sample.ranks[0].step = {1e3 * ms, 1e3 * ms};
  sample.ranks[0].parts_us[static_cast<std::size_t>(StepPart::host)] = 1e3 * ms;
  return sample;
}

std::vector<std::int64_t> kept(const std::vector<StepSample>& steps) {
  std::vector<std::int64_t> numbers;
  for (const StepSample& step : steps) {
    if (step.left_out.empty()) numbers.push_back(step.step);
  }
  return numbers;
}

// 30 and 20 before steps of 10, and one of 3 behind them.
TEST(StepSeries, LeavesOutFirstSlowAndPartialSteps) {
  std::vector<StepSample> steps;
  const std::vector<double> times{30, 20, 10, 10.2, 9.9, 10, 10.1, 3};
  for (std::size_t i = 0; i < times.size(); ++i)
    steps.push_back(step_of(static_cast<std::int64_t>(i), times[i]));
  leave_out_unsteady(steps);
  EXPECT_THAT(kept(steps), ::testing::ElementsAre(2, 3, 4, 5, 6));
  EXPECT_EQ(steps[0].left_out, "warm-up: 30.0 ms, steady steps 10.1 ms");
  EXPECT_EQ(steps[7].left_out, "partial: 3.00 ms, median step 10.1 ms");
  // A slow step in the middle is what the statistics are for; steps that vary have no warm-up.
  std::vector<StepSample> slow, varying;
  for (const double ms : {10.0, 10.1, 30.0, 10.0, 10.2}) slow.push_back(step_of(0, ms));
  for (const double ms : {14.0, 8.0, 13.0, 9.0, 12.0}) varying.push_back(step_of(0, ms));
  leave_out_unsteady(slow);
  leave_out_unsteady(varying);
  EXPECT_EQ(kept(slow).size(), 5U);
  EXPECT_EQ(kept(varying).size(), 5U);
}

// One rank, 10 and 14 ms that its host takes: mean 12, deviation 2, all of it the host's.
TEST(StepSeries, SharesTheSpreadOut) {
  const std::vector<StepSample> steps{step_of(1, 10), step_of(2, 14)};
  const ForecastSeries series = series_of(steps, std::vector<std::int32_t>{3});
  EXPECT_EQ(series.step.n, 2U);
  EXPECT_DOUBLE_EQ(series.step.mean_ms, 12);
  EXPECT_DOUBLE_EQ(series.step.p50_ms, 10);
  EXPECT_DOUBLE_EQ(series.measured.p99_ms, 14);
  EXPECT_DOUBLE_EQ(series.deviation_over_steps_ms, 2);
  ASSERT_EQ(series.spread.size(), kStepPartCount);
  EXPECT_EQ(series.spread[0].what, "host");
  EXPECT_DOUBLE_EQ(series.spread[0].over_steps, 1);
  EXPECT_DOUBLE_EQ(series.spread[1].over_steps, 0);
  EXPECT_EQ(series.ranks[0].rank, 3);
}

// Lookups take 0.1 us a byte on both ranks (10 and 20 us); the same gemm takes 10 and 14. Work alone gives 10 + 12 and
// 20 + 12, mean 27: -5 and +5 by data. In all 20 and 34: -7 and +7, so -2 and +2 are the hardware.
TEST(StepSeries, TellsDataFromHardware) {
  StepSample step = step_of(1, 10);
  step.ranks.resize(2, step.ranks[0]);
  step.ranks[0].operators = {{"lookup", 10, 0, 100}, {"mm", 10, 0, 50}};
  step.ranks[1].operators = {{"lookup", 20, 0, 200}, {"mm", 14, 0, 50}};
  const std::vector<StepSample> steps{step};
  const ForecastSeries series = series_of(steps, std::vector<std::int32_t>{0, 1});
  EXPECT_NEAR(series.ranks[0].data_skew_ms, -0.005, 1e-12);
  EXPECT_NEAR(series.ranks[1].data_skew_ms, 0.005, 1e-12);
  EXPECT_NEAR(series.ranks[0].hardware_ms, -0.002, 1e-12);
  EXPECT_NEAR(series.ranks[1].hardware_ms, 0.002, 1e-12);
}

// The GPU of rank 1 takes once or three times as long, mean 2: 20 + 30 + 5 or 20 + 90 + 5. Every slow scenario is one of
// 115 us; of its 90 us of kernel 90 (1 - 2 / 3) = 30 are too many.
TEST(TailCauses, NameTheRankAndThePart) {
  const RecordedProgram recorded = test::two_recorded_ranks();
  SlowdownDraws draws;
  draws.of_rank = {{{1, 1}}, {{1, 1}, {1, 3}}};
  const Result<ForecastScenarios> swept =
      sweep_with_causes(recorded, Costs{recorded.program}, draws, {.n = 100, .seed = 1});
  ASSERT_TRUE(swept.ok()) << swept.error().message();
  EXPECT_EQ(swept->n_tail, 10U);
  EXPECT_DOUBLE_EQ(swept->tail_from_ms, 0.115);
  ASSERT_EQ(swept->tail.size(), 1U);
  EXPECT_EQ(swept->tail[0].rank, 1);
  EXPECT_EQ(swept->tail[0].what, "gpu");
  EXPECT_DOUBLE_EQ(swept->tail[0].share, 1);
  EXPECT_NEAR(swept->tail[0].mean_excess_ms, 0.030, 1e-9);
  EXPECT_DOUBLE_EQ(swept->step.max_ms, 0.115);
}

TEST(StepSpread, NeedsSomethingToDrawFrom) {
  RecordedProgram recorded = test::two_recorded_ranks();
  const Costs costs{recorded.program};
  Forecast forecast;
  const SimulateStep none = [](std::int64_t, const ShowStep&) -> Status { return Error{"no such step"}; };
  EXPECT_TRUE(add_spread({.scenarios = 8}, {}, none, recorded, costs, forecast).ok());
  ASSERT_TRUE(forecast.scenarios);
  EXPECT_EQ(forecast.scenarios->drawn_from, "the 2 ranks of one step, interchanged at random");
  const std::vector<std::int64_t> one{4};
  EXPECT_EQ(
      add_spread({.all_steps = true}, one, none, recorded, costs, forecast).error().message(),
      "no step for statistics, found step 4: no such step; leave out --all-steps to use the whole trace");
}

}  // namespace
}  // namespace stepcast::step_series_test
