#include "stepcast/cost/node_power.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stepcast/platform/platform_file.h"

namespace stepcast::node_power_test {
namespace {

using ::testing::HasSubstr;

// 2,000 W and GPUs of 100 W that wait and 600 W that compute; half of the difference stays while they wait.
NodePower plain() {
  return {.host_W = 2000,
          .gpu_idle_W = 100,
          .gpu_busy_W = 600,
          .gpu_top_W = 700,
          .waiting_weight = 0.5,
          .switch_W = 300,
          .log_band = 0.1};
}

TEST(NodePower, IsHostAndGpusBetweenWaitingAndComputing) {
  const NodePower power = plain();
  EXPECT_DOUBLE_EQ(power.gpu_watts(0), 600);
  EXPECT_DOUBLE_EQ(power.gpu_watts(1), 350);    // 100 + 500 x 0.5
  EXPECT_DOUBLE_EQ(power.gpu_watts(0.2), 550);  // u = 1 - 0.5 x 0.2
  EXPECT_DOUBLE_EQ(power.node_watts(8, 0.2), 2000 + 8 * 550);
  EXPECT_DOUBLE_EQ(power.cluster_watts(8, 8, 0.2), 6400);  // one node needs no switch
  EXPECT_DOUBLE_EQ(power.cluster_watts(16, 8, 0.2), 2 * (2000 + 300) + 16 * 550);
  EXPECT_DOUBLE_EQ(power.cluster_watts(12, 8, 0.2), 2 * (2000 + 300) + 12 * 550);
}

TEST(PowerLimit, LowersTheClockAsFarAsTheDrawAsks) {
  // 600 W above a base of 100 W; 300 W are left.
  const UncappedDraw draw{100, 700, 700};
  PowerLimitRule rule{.exponent = 1, .clock_bound = 0.5, .held = 1, .spread = 0};
  DrawUnderLimit is = under_limit(rule, draw, 400);
  EXPECT_NEAR(is.slow_down, 0.5 + 0.5 / 0.5, 1e-12);
  EXPECT_NEAR(is.mean_W, 400, 1e-9);
  rule.exponent = 2;
  is = under_limit(rule, draw, 400);
  EXPECT_NEAR(is.slow_down, 0.5 + 0.5 / 0.70710678, 1e-7);
  rule.held = 0.75;  // as a limit of 300 W
  EXPECT_NEAR(under_limit(rule, draw, 400).mean_W, 300, 1e-9);
}

TEST(PowerLimit, TakesPeaksFirst) {
  const PowerLimitRule spread{.exponent = 1, .clock_bound = 1, .held = 1, .spread = 0.5};
  const DrawUnderLimit free = under_limit(spread, {100, 700, 400}, 700);
  EXPECT_DOUBLE_EQ(free.slow_down, 1);
  EXPECT_DOUBLE_EQ(free.mean_W, 400);
  // Phases of 100 + 300 x (1 +- 0.44) W: the upper ones are above 450 W, the mean is not.
  const DrawUnderLimit is = under_limit(spread, {100, 700, 400}, 450);
  EXPECT_GT(is.slow_down, 1.01);
  EXPECT_LT(is.slow_down, 1.1);
  EXPECT_LT(is.mean_W, 400);
  EXPECT_GT(is.mean_W, 370);
  // Nothing is left above the base: slow, but not for ever.
  EXPECT_LE(under_limit(spread, {100, 700, 400}, 90).slow_down, 100);
}

TEST(PowerLimit, TakesLongerAndDrawsLessTheLowerItIs) {
  const NodePower power = plain();
  double slow_down = 1, watts = power.gpu_watts(0.1);
  for (const double limit_W : {700.0, 600.0, 500.0, 400.0, 300.0, 200.0}) {
    const DrawUnderLimit is = power.computing(limit_W);
    EXPECT_GE(is.slow_down, slow_down);
    EXPECT_LE(power.gpu_watts(0.1, limit_W), watts);
    EXPECT_LE(is.mean_W, limit_W);
    slow_down = is.slow_down;
    watts = power.gpu_watts(0.1, limit_W);
  }
  EXPECT_GT(slow_down, 1.5);
}

TEST(NodePower, IsThePlatformsRecordOrSharesOfItsLimits) {
  const auto dgx = load_platform("dgx-h100");
  ASSERT_TRUE(dgx.ok());
  const std::optional<NodePower> measured = NodePower::of(*dgx);
  ASSERT_TRUE(measured);
  EXPECT_DOUBLE_EQ(measured->gpu_top_W, 700);
  EXPECT_LT(measured->log_band, 0.2);
  // Published nodes of 8 H100 SXM draw about 7 kW while they compute, 2.5 to 2.9 kW before.
  EXPECT_NEAR(measured->node_watts(8, 0), 7100, 150);
  EXPECT_NEAR(measured->host_W + 8 * measured->gpu_idle_W, 2700, 200);

  Platform bare = *dgx;
  bare.models.clear();
  const std::optional<NodePower> usual = NodePower::of(bare);
  ASSERT_TRUE(usual);
  EXPECT_DOUBLE_EQ(usual->log_band, 0.2);
  EXPECT_NEAR(usual->node_watts(8, 0), measured->node_watts(8, 0), 100);
  bare.device.power_limit_W.reset();
  EXPECT_FALSE(NodePower::of(bare));
  EXPECT_THAT(power_under(bare, 500).error().message(), HasSubstr("without `power_limit_W`"));
}

TEST(NodePower, ReadsNoRecordThatCannotBe) {
  const auto with = [](double idle, double busy, double weight) {
    JsonValue parameters = JsonValue::object();
    parameters.add("host_W", JsonValue{1000.0})
        .add("gpu_idle_share", JsonValue{idle})
        .add("gpu_busy_share", JsonValue{busy})
        .add("waiting_weight", JsonValue{weight})
        .add("log_band", JsonValue{0.1});
    return NodePower::read(parameters, 500);
  };
  ASSERT_TRUE(with(0.2, 0.9, 0.5).ok());
  EXPECT_DOUBLE_EQ(with(0.2, 0.9, 0.5)->gpu_busy_W, 450);
  EXPECT_THAT(with(0.9, 0.2, 0.5).error().message(), HasSubstr("gpu_busy_share"));
  EXPECT_THAT(with(0.2, 1.1, 0.5).error().message(), HasSubstr("gpu_busy_share"));
  EXPECT_THAT(with(0.2, 0.9, 1.5).error().message(), HasSubstr("waiting_weight"));
  EXPECT_THAT(with(0, 0.9, 0.5).error().message(), HasSubstr("gpu_idle_share"));
}

TEST(PowerLimit, LiesBetweenAWaitingGpuAndItsDataSheet) {
  const auto dgx = load_platform("dgx-h100");
  ASSERT_TRUE(dgx.ok());
  EXPECT_TRUE(power_under(*dgx, 700).ok());
  EXPECT_EQ(
      power_under(*dgx, 90).error().message(),
      "power limit: found 90 W, expected above the 105 W of a waiting H100-SXM5-80GB, at most the 700 W of "
      "its data sheet");
  EXPECT_FALSE(power_under(*dgx, 700.5).ok());
  EXPECT_FALSE(power_under(*dgx, -1).ok());
}

TEST(Watts, AreReadWithTheirUnit) {
  EXPECT_DOUBLE_EQ(*parse_watts("500W", "--x"), 500);
  EXPECT_DOUBLE_EQ(*parse_watts("500", "--x"), 500);
  EXPECT_DOUBLE_EQ(*parse_watts("2.5MW", "--x"), 2.5e6);
  EXPECT_DOUBLE_EQ(*parse_watts("40kW", "--x"), 4e4);
  for (const char* text : {"", "W", "-5W", "0", "5 W", "5w", "nan", "inf", "1e300MW"})
    EXPECT_FALSE(parse_watts(text, "--x").ok()) << text;
  EXPECT_EQ(parse_watts("5x", "--power-limit").error().message(),
            "--power-limit: found `5x`, expected 500W, 40kW or 2.5MW");
}

}  // namespace
}  // namespace stepcast::node_power_test
