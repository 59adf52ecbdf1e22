#include <array>
#include <cstdint>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stepcast/api/stepcast.h"

#include "tests/support/fails_with.h"
#include "tests/support/rounds.h"
#include "tests/support/temporary_folder.h"

namespace stepcast::cluster_test {
namespace {

template <class T>
std::string answer(const Result<T>& result) {
  return result.ok() ? forecast_json(*result) : "error: " + result.error().message();
}

// A question about `gpus` GPUs with flags drawn at random; most state their layout, which is then not searched.
PredictRequest drawn_question(std::mt19937_64& random, std::int64_t gpus) {
  const auto one_in = [&](unsigned n) { return random() % n == 0; };
  constexpr std::array kModels{"gpt2", "gpt2-xl", "llama-3-8b", "mixtral-8x7b", "bert-large"};
  PredictRequest request;
  request.job.model = kModels[random() % kModels.size()];
  request.only_critical = one_in(2);
  request.compares_types = one_in(2);
  request.explained = one_in(4);
  JobSettings& settings = request.job.settings;
  settings.global_batch_sequences = 2 * gpus;
  settings.micro_batch_sequences = 1;
  if (one_in(40)) {
    request.open_layout = one_in(2) ? OpenLayout::fastest : OpenLayout::least_memory;
  } else {
    settings.tensor = one_in(2) ? 2 : 1;
    settings.pipeline = one_in(2) ? 2 : 1;
    if (settings.pipeline == 2 && one_in(3)) settings.virtual_stages = 2;
    settings.distributed_optimizer = one_in(2);
    settings.sequence_parallel = settings.tensor > 1;
    if (one_in(3)) settings.recompute = Recompute::full;
  }
  if (one_in(6)) request.what_if = {"nvlink=2x", "gemm=1.5x"};
  if (one_in(6)) request.power_limit_W = 500;
  if (one_in(8)) settings.fp8 = true;
  if (one_in(8)) request.job.gpus_per_node = 4;
  if (one_in(8)) request.job.framework = Framework::torchtitan;
  if (one_in(10)) request.largest = LargestBatch::global;
  if (request.largest == LargestBatch::global) {
    settings.micro_batch_sequences.reset();
    settings.global_batch_sequences.reset();
  }
  if (one_in(4)) {
    request.budget.tokens = 1e11;
    request.budget.carbon_g_per_kWh = 400;
    if (one_in(2)) request.budget.failures = "default";
  }
  return request;
}

// The same answer, whichever way the GPUs are named: "64xdgx-h100", "32xdgx-h100+32xdgx-h100", or 64 and "dgx-h100".
TEST(Cluster, OnePoolIsItsPlatform) {
  const test::TemporaryFolder folder;
  const std::string fabric = (folder.path() / "fabric.json").string();
  std::ofstream{fabric} << R"({"stepcast_platform": 1, "name": "fabric", "extends": "dgx-h100",
                               "node": {"network": {"tiers": [{"nodes": 2, "oversubscription": 4}]}}})";
  const std::vector<std::string> platforms{"dgx-h100", "dgx-a100", "h100", "8xmi300x", fabric};
  const Session session;
  std::mt19937_64 random{47};
  const int n_questions = test::rounds(50, 200);
  int answered = 0;
  for (int i = 0; i < n_questions; ++i) {
    const std::string& platform = platforms[random() % platforms.size()];
    const std::int64_t gpus = std::int64_t{8} << random() % 3;
    PredictRequest named = drawn_question(random, gpus), pooled = named;
    if (platform == fabric && i % 2 == 0) named.background_load = pooled.background_load = 0.5;
    named.platform = platform;
    named.job.n_gpus = gpus;
    pooled.pools = i % 4 == 0 ? fmt::format("{0}x{1}+{0}x{1}", gpus / 2, platform)
                              : fmt::format("{}x{}", gpus, platform);
    if (i % 3 == 0 && pooled.budget.tokens && pooled.pools.find('+') == std::string::npos) {
      pooled.pools += "@here";
      pooled.zones = {"here:price=2.5"};
      named.budget.price_per_gpu_hour = 2.5;
    }
    const Result<Forecast> forecast = session.predict(named);
    answered += forecast.ok();
    ASSERT_EQ(answer(session.predict(pooled)), answer(forecast)) << pooled.pools << ", question " << i;
  }
  EXPECT_GT(answered, n_questions / 2);
}

// A limit of each pool, and one of all; of one pool it is that of the question.
TEST(Cluster, PoolsHavePowerLimits) {
  PredictRequest request;
  request.job.model = "llama-3-8b";
  request.job.settings.tensor = request.job.settings.pipeline = 2;
  request.job.settings.global_batch_sequences = 32;
  const Session session;
  const auto asked = [&](const std::string& pools, std::optional<double> limit_W) {
    request.pools = pools;
    request.power_limit_W = limit_W;
    return *session.predict(request);
  };
  const Forecast both = asked("8xdgx-h100:350W+8xdgx-a100:350W", {}),
                 of_all = asked("8xdgx-h100+8xdgx-a100", 350), free = asked("8xdgx-h100+8xdgx-a100", {}),
                 one = asked("8xdgx-h100+8xdgx-a100:250W", {});
  EXPECT_EQ(both.step_time_ms, of_all.step_time_ms);
  EXPECT_EQ(both.power->cluster_W, of_all.power->cluster_W);
  EXPECT_EQ(both.power->limit_W, 350);
  EXPECT_GT(one.step_time_ms, free.step_time_ms);
  EXPECT_FALSE(one.power->limit_W);
  EXPECT_EQ(answer(Result<Forecast>{asked("8xdgx-h100:500W", {})}),
            answer(Result<Forecast>{asked("8xdgx-h100", 500)}));
}

// What a report shows beside a forecast, and series.
TEST(Cluster, OnePoolTakesEveryQuestion) {
  std::mt19937_64 random{48};
  PredictRequest named = drawn_question(random, 16), pooled = named;
  named.job.n_gpus = 16;
  pooled.pools = "8xdgx-h100+8xdgx-h100";
  const Session session;
  const Result<Report> of_named = session.report(named), of_pool = session.report(pooled);
  ASSERT_TRUE(of_named.ok() && of_pool.ok());
  EXPECT_EQ(sensitivity_json(of_pool->sensitivity), sensitivity_json(of_named->sensitivity));
  EXPECT_EQ(forecast_json(of_pool->forecast), forecast_json(of_named->forecast));
  const StepSeries batches{.gpus = {}, .micro_batches = {}, .global_batches = {32, 64}};
  const auto series = session.predict_series(named, batches), again = session.predict_series(pooled, batches);
  ASSERT_TRUE(series.ok() && again.ok());
  EXPECT_EQ(scaling_series_json(*again), scaling_series_json(*series));
}

TEST(Cluster, APriceIsSaidOnce) {
  PredictRequest request;
  request.job.model = "gpt2";
  request.pools = "8xdgx-h100@east";
  request.zones = {"east:price=2"};
  request.budget = {.tokens = 1e9, .price_per_gpu_hour = 3};
  EXPECT_THAT(Session{}.predict(request), test::FailsWith("prices of zones contradict each other"));
}

}  // namespace
}  // namespace stepcast::cluster_test
