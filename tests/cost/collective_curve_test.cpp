#include "stepcast/cost/collective_curve.h"

#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/fails_with.h"

namespace stepcast::collective_curve_test {
namespace {

TEST(BusFactor, ByHand) {
  EXPECT_DOUBLE_EQ(bus_factor(CollectiveOp::all_reduce, 8), 1.75);  // 2 x 7 / 8
  EXPECT_DOUBLE_EQ(bus_factor(CollectiveOp::all_gather, 4), 0.75);
  EXPECT_DOUBLE_EQ(bus_factor(CollectiveOp::send_receive, 8), 1);
  EXPECT_DOUBLE_EQ(ring_steps(CollectiveOp::all_reduce, 8), 14);
  EXPECT_DOUBLE_EQ(ring_steps(CollectiveOp::reduce_scatter, 8), 7);
}

// The published parameters of the DRAM curve of an A100 with factor 1; the arithmetic is in the comments.
SigmoidForm published_a100() {
  SigmoidForm form;
  form.log2_m1 = 14;
  form.log2_m2 = 29;
  form.max_bandwidth_GBps = 1391.1;
  form.startup_us = 6.45;
  form.A = 2.2096;
  form.x0 = 20.352;
  form.k = 0.6253;
  form.b = 0.9324;
  return form;
}

TEST(SigmoidForm, HasItsThreeRegionsExactly) {
  const SigmoidForm form = published_a100();
  EXPECT_DOUBLE_EQ(form.time(Bytes{16384}).value(), 6.45);  // at m1: constant
  // Just above m1: exponent 2.2096 / (1 + exp(0.6253 x 6.352)) + 0.9324 = 0.97328; B = 9.4033 GB/s; 16384 /
  // 9403.3.
  EXPECT_NEAR(form.time(Bytes{16384.001}).value(), 1.7424, 2e-3);
  // At m2: 536870912 / 1000 / B(29); exponent 2.2096 / (1 + exp(-0.6253 x 8.648)) + 0.9324 = 3.13213.
  EXPECT_NEAR(form.time(Bytes{536870912.0}).value(), 396.0, 1.0);
  // Above: 6.45 + 536.9e6 / 1391.1e3 = 392.4.
  EXPECT_NEAR(form.time(Bytes{536870913.0}).value(), 392.4, 0.1);
}

TEST(SigmoidForm, SurvivesItsRecord) {
  const auto back = SigmoidForm::from(published_a100().record(), 1);
  ASSERT_TRUE(back.ok());
  EXPECT_DOUBLE_EQ(back->time(Bytes{1e6}).value(), published_a100().time(Bytes{1e6}).value());
  CurveForm broken = published_a100().record();
  broken.parameters.erase("k");
  const auto error = SigmoidForm::from(broken, 1);
  ASSERT_FALSE(error.ok());
  EXPECT_NE(error.error().message().find("'k'"), std::string::npos);
}

StartupForm simple_form() {
  StartupForm form;
  form.ln_startup_us = std::log(10.0);
  form.ln_max_GBps = std::log(100.0);
  form.factor = 1.75;
  return form;
}

TEST(StartupForm, WithoutStepsIsStartupPlusTransfer) {
  // q = 1, d1 = d2 = 0: 10 us + 1.75 x 8e6 B / 100 GB/s = 10 + 140.
  EXPECT_NEAR(simple_form().time(Bytes{8e6}).value(), 150, 1e-9);
  EXPECT_NEAR(simple_form().time(Bytes{1}).value(), 10, 1e-4);
}

TEST(StartupForm, ReachesItsLimits) {
  StartupForm form = simple_form();
  form.d1 = 1.5;
  form.x1 = 18;
  form.d2 = 0.5;
  form.x2 = 22;
  form.ln_q = std::log(1.5);
  EXPECT_NEAR(form.time(Bytes{1}).value(), 10, 1e-3);
  const double far = std::exp2(45);
  EXPECT_NEAR(form.time(Bytes{far}).value() / (1.75 * far / 100e3), 1, 1e-4);
  const auto back = StartupForm::from(form.record(), form.factor);
  ASSERT_TRUE(back.ok());
  EXPECT_NEAR(back->time(Bytes{3e5}).value(), form.time(Bytes{3e5}).value(), 1e-9);
}

TEST(StartupForm, HasNoSteps) {
  StartupForm form = simple_form();
  form.d1 = 2;
  form.x1 = 17;
  form.k = 1.5;
  for (double x = 0; x < 36; x += 0.01) {
    EXPECT_LT(std::abs(form.ln_time_us(x + 0.01) - form.ln_time_us(x)), 0.02) << x;
  }
}

TEST(MakeNonDecreasing, PoolsWhatFalls) {
  std::vector<double> v{1, 3, 2, 2, 5, 4};
  make_non_decreasing(v);
  const std::vector<double> expected{1, 7.0 / 3, 7.0 / 3, 7.0 / 3, 4.5, 4.5};
  for (std::size_t i = 0; i < v.size(); ++i) EXPECT_NEAR(v[i], expected[i], 1e-12);
}

TEST(MonotoneCubic, GoesThroughKnotsWithoutOvershoot) {
  const MonotoneCubic curve{{0, 1, 2, 4}, {0, 0, 1, 5}};
  EXPECT_DOUBLE_EQ(curve.at(1), 0);
  EXPECT_DOUBLE_EQ(curve.at(2), 1);
  EXPECT_DOUBLE_EQ(curve.at(-3), 0);
  EXPECT_DOUBLE_EQ(curve.at(9), 5);
  double before = -1;
  for (double x = 0; x <= 4; x += 0.01) {
    EXPECT_GE(curve.at(x), before - 1e-12);
    before = curve.at(x);
  }
  EXPECT_DOUBLE_EQ((MonotoneCubic{{3}, {7}}.at(1)), 7);
}

CollectiveCurve record_with_knots() {
  CollectiveCurve record;
  record.collective = CollectiveOp::all_reduce;
  record.gpus_per_node = record.n_ranks = 8;
  CurveFit& fit = record.fit.edit();
  fit.knots = {{1024, 20}, {65536, 25}, {1 << 20, 60}, {1 << 26, 600}, {1 << 30, 8200}};
  fit.residuals = {{"latency", 1024, 65536, -0.02, 0, 0.04, 10},
                   {"bandwidth", 65536, 1 << 30, -0.01, 0, 0.01, 10}};
  fit.improved = simple_form().record();
  fit.provenance.source = FigureSource::fitted;
  fit.provenance.range = {{"message_bytes_min", 1024}, {"message_bytes_max", 1 << 30}};
  return record;
}

TEST(TimeCurve, AnswersItsKnots) {
  const auto curve = time_curve(record_with_knots());
  ASSERT_TRUE(curve.ok()) << curve.error().message();
  const CollectiveCurve record = record_with_knots();
  for (const CurveKnot& knot : record.fit->knots) {
    EXPECT_NEAR(curve->at(Bytes{knot.message_bytes}).time.value(), knot.time_us, 1e-6 * knot.time_us);
  }
}

TEST(TimeCurve, IsPositiveMonotoneAndContinuous) {
  const auto curve = time_curve(record_with_knots());
  ASSERT_TRUE(curve.ok());
  double before = 0;
  for (double x = 0; x <= 40; x += 0.0625) {
    const Estimate e = curve->at(Bytes{std::exp2(x)});
    EXPECT_GT(e.time.value(), 0);
    EXPECT_GE(e.time.value(), before) << x;
    EXPECT_LE(e.p10.value(), e.time.value());
    EXPECT_GE(e.p90.value(), e.time.value());
    if (before > 0) {
      EXPECT_LT(e.time.value() / before, 1.1) << x;
    }
    before = e.time.value();
  }
}

TEST(TimeCurve, OutsideGoesOnLikeItsFormAndKnowsLess) {
  const auto curve = time_curve(record_with_knots());
  ASSERT_TRUE(curve.ok());
  // Far beyond, eight times the message takes eight times as long.
  const double ratio = curve->at(Bytes{0x1p36}).time.value() / curve->at(Bytes{0x1p33}).time.value();
  EXPECT_NEAR(ratio, 8, 0.01);
  // Below, the start-up stays.
  EXPECT_NEAR(curve->at(Bytes{1}).time.value(), 20, 0.05);
  const auto width = [&](double bytes) {
    const Estimate e = curve->at(Bytes{bytes});
    return (e.p90 - e.p10) / e.time;
  };
  EXPECT_GT(width(0x1p36), 3 * width(0x1p28));
}

TEST(TimeCurve, WorksFromTheFormAloneAndRefusesNothing) {
  CollectiveCurve record = record_with_knots();
  record.fit.edit().knots.clear();
  const auto curve = time_curve(record);
  ASSERT_TRUE(curve.ok());
  EXPECT_NEAR(curve->at(Bytes{0x1p23}).time.value(), simple_form().time(Bytes{0x1p23}).value(), 0.5);
  record.fit.edit().improved = {};
  EXPECT_THAT(time_curve(record), test::FailsWith("has neither knots nor a form 'startup_two_steps'"));
}

TEST(TimeCurve, RefusesKnotsThatCannotBe) {
  CollectiveCurve record = record_with_knots();
  record.fit.edit().knots[1].time_us = 0;
  EXPECT_THAT(time_curve(record), test::FailsWith("knots need positive sizes and times"));
  record = record_with_knots();
  record.fit.edit().knots[1].message_bytes = 512;
  EXPECT_THAT(time_curve(record), test::FailsWith("the sizes of the knots must increase"));
}

}  // namespace
}  // namespace stepcast::collective_curve_test
