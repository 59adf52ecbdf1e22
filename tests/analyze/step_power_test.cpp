#include <gtest/gtest.h>

#include "stepcast/analyze/make_forecast.h"
#include "stepcast/api/stepcast.h"
#include "stepcast/cost/node_power.h"
#include "stepcast/platform/platform_file.h"
#include "stepcast/predict/step_prediction.h"

namespace stepcast::step_power_test {
namespace {

// 100 ms: 60 compute, 10 exchange inside the node, 20 between nodes, 10 idle.
Forecast of_hundred_ms(std::uint64_t n_gpus) {
  Forecast f;
  f.step_time_ms = 100;
  f.n_gpus = n_gpus;
  f.throughput.tokens_per_s = 1000;
  ForecastClass& c = f.classes.emplace_back();
  c.window_ms = 100;
  c.computation_ms = 60;
  c.exposed_comm_ms = 30;
  c.exposed_comm_by_group_ms = {{"tensor", 10}, {"data", 20}};
  c.idle_ms = {{"pipeline", 7}, {"between_steps", 3}};
  return f;
}

TEST(StepPower, CountsWhatLeavesTheNodeAsWaiting) {
  const auto platform = load_platform("dgx-h100");
  ASSERT_TRUE(platform.ok());
  const std::optional<NodePower> power = NodePower::of(*platform);
  Forecast one = of_hundred_ms(8), several = of_hundred_ms(16);
  add_power(one, *platform);
  add_power(several, *platform);
  ASSERT_TRUE(one.power && several.power);
  EXPECT_NEAR(one.power->waiting_share, 0.1, 1e-12);
  EXPECT_NEAR(several.power->waiting_share, 0.3, 1e-12);
  EXPECT_DOUBLE_EQ(one.power->node_W, power->node_watts(8, one.power->waiting_share));
  EXPECT_DOUBLE_EQ(one.power->cluster_W, one.power->node_W);
  EXPECT_GT(several.power->cluster_W, 2 * several.power->node_W);
  EXPECT_DOUBLE_EQ(*one.power->joules_per_token, one.power->node_W / 1000);
  EXPECT_LT(one.power->node_p10_W, one.power->node_W);
  EXPECT_GT(one.power->node_p90_W, one.power->node_W);
}

TEST(StepPower, BecomesEnergyAndCarbon) {
  const auto platform = load_platform("dgx-h100");
  ASSERT_TRUE(platform.ok());
  Forecast f = of_hundred_ms(8);
  add_power(f, *platform);
  f.power->cluster_W = 5000;
  // 36,000 steps of 0.1 s: one hour at 5 kW, at 400 g per kWh.
  ASSERT_TRUE(add_training(f, {.iterations = 36'000, .carbon_g_per_kWh = 400}).ok());
  EXPECT_DOUBLE_EQ(*f.training->energy_MWh, 0.005);
  EXPECT_DOUBLE_EQ(*f.training->co2_t, 0.002);
  // A measured power stands in its place.
  ASSERT_TRUE(add_training(f, {.iterations = 36'000, .power_per_gpu_W = 1000}).ok());
  EXPECT_DOUBLE_EQ(*f.training->energy_MWh, 0.008);
  EXPECT_FALSE(f.training->co2_t);
}

TEST(StepPower, IsNotKnownOfADeviceWithoutALimit) {
  auto platform = load_platform("dgx-h100");
  ASSERT_TRUE(platform.ok());
  platform->device.power_limit_W.reset();
  Forecast f = of_hundred_ms(8);
  add_power(f, *platform);
  EXPECT_FALSE(f.power);
}

TEST(StepPower, SharesOfASearchedStepWaitAlike) {
  StepShares shares;
  shares.class_us[0] = 60;
  shares.exposed_us[static_cast<std::size_t>(GroupKind::tensor)] = 10;
  shares.exposed_us[static_cast<std::size_t>(GroupKind::data)] = 20;
  shares.bubble_us = 7;
  shares.fixed_us = 3;
  EXPECT_NEAR(shares.waiting_share(true), 0.3, 1e-12);
  EXPECT_NEAR(shares.waiting_share(false), 0.1, 1e-12);
}

TEST(StepPower, OfALimitIsLessInALongerStep) {
  const Session session;
  PredictRequest request;
  request.job.model = "llama-3-8b";
  request.job.n_gpus = 16;
  request.job.command_line =
      "--tensor-model-parallel-size 2 --micro-batch-size 1 --global-batch-size 64 --seq-length 8192 "
      "--use-distributed-optimizer --bf16";
  const auto free = session.predict(request);
  request.power_limit_W = 400;
  const auto limited = session.predict(request);
  ASSERT_TRUE(free.ok()) << free.error().message();
  ASSERT_TRUE(limited.ok()) << limited.error().message();
  EXPECT_GT(limited->step_time_ms, 1.1 * free->step_time_ms);
  EXPECT_LT(limited->step_time_ms, 1.75 * free->step_time_ms);  // never as 700 over 400
  EXPECT_LT(limited->power->node_W, 0.8 * free->power->node_W);
  EXPECT_LE(limited->power->gpu_W, 400);
  EXPECT_EQ(limited->power->limit_W, 400);
  // Less sure, too.
  EXPECT_GT(limited->step_time_p90_ms / limited->step_time_ms, free->step_time_p90_ms / free->step_time_ms);
  request.power_limit_W = 701;
  EXPECT_FALSE(session.predict(request).ok());
}

}  // namespace
}  // namespace stepcast::step_power_test
