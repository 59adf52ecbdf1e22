#include "stepcast/run/run_forecast.h"

#include <cmath>
#include <cstddef>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stepcast/run/goodput.h"
#include "stepcast/run/recovery.h"

namespace stepcast::run_forecast_test {
namespace {

constexpr ComputeTime kMonth{30 * 86400.0, 28 * 86400.0, 33 * 86400.0};

// Of a model of 405e9 parameters, 14 bytes each, on as many GPUs as the published job.
RunJob large_job() {
  RunJob job;
  job.n_gpus = job.writers = 16384;
  job.gpus_per_node = 8;
  job.replicas = 128;
  job.step_s = 5;
  job.checkpoint_bytes = 5.67e12;
  job.host_bytes_per_s = 50e9;
  job.network_bytes_per_s = 50e9;
  return job;
}

RunForecast forecast_of(const Recovery& recovery, const RunJob& job = large_job()) {
  const Result<RunForecast> run = forecast_run({default_failures(), recovery}, job, kMonth);
  EXPECT_TRUE(run.ok()) << run.error().message();
  return run.ok() ? *run : RunForecast{};
}

TEST(RunForecast, PartsOfTheTimeAreAllOfIt) {
  for (const CheckpointMode mode : {CheckpointMode::sync, CheckpointMode::async, CheckpointMode::memory}) {
    const RunForecast run = forecast_of({.mode = mode, .interval_s = 600, .spare_nodes = 9});
    double all = run.effective_share_percent + run.checkpoint_percent + run.waiting_percent;
    for (const RunLoss& loss : run.losses) all += loss.down_percent + loss.again_percent;
    EXPECT_NEAR(all, 100, 1e-9) << to_string(mode);
    EXPECT_GT(run.waiting_percent, 0.5);
    EXPECT_NEAR(run.days * run.effective_share_percent / 100, 30, 1e-9);
  }
}

// Half of the GPUs at the rates of all of them are interrupted half as often; hosts of four GPUs are twice as many.
TEST(RunForecast, PoolsAreInterruptedAtTheirOwnRates) {
  RunJob job = large_job();
  const auto of_pools = [&](double gpus_per_node, const std::string& how) {
    job.pools = {{{"a"}, 8192, 8}, {{"b"}, 8192, gpus_per_node}};
    const Result<RunAssumptions> read = read_run_assumptions(how, {}, job.pools);
    EXPECT_TRUE(read.ok()) << read.error().message();
    const Result<RunForecast> run = forecast_run(*read, job, kMonth);
    EXPECT_TRUE(run.ok()) << run.error().message();
    return *run;
  };
  const RunForecast alike = of_pools(8, "a=default,b=default"), all = of_pools(8, "default");
  EXPECT_NEAR(alike.mean_time_to_interruption_h / all.mean_time_to_interruption_h, 1, 1e-12);
  EXPECT_NEAR(alike.effective_share_percent / all.effective_share_percent, 1, 1e-12);
  EXPECT_NEAR(alike.losses[0].mean_time_h / all.losses[0].mean_time_h, 2, 1e-12);
  EXPECT_EQ(alike.losses[5].cause, "host of b");
  const RunForecast small_hosts = of_pools(4, "a=default,b=default");
  EXPECT_NEAR(alike.losses[5].mean_time_h / small_hosts.losses[5].mean_time_h, 2, 1e-12);
  // Nodes of more GPUs than a host of the published job are several hosts.
  EXPECT_NEAR(of_pools(64, "a=default,b=default").losses[5].mean_time_h / alike.losses[5].mean_time_h, 1,
              1e-12);
}

TEST(RunForecast, RefusesCheckpointsWithinAStep) {
  const Result<RunForecast> run = forecast_run(
      {default_failures(), {.mode = CheckpointMode::async, .interval_s = 4}}, large_job(), kMonth);
  ASSERT_FALSE(run.ok());
  EXPECT_THAT(
      run.error().message(),
      ::testing::HasSubstr("checkpoints are between steps, found interval=4s, expected at least a step: 5s"));
}

TEST(RunForecast, OfThePublishedJobIsInterruptedAsItWas) {
  const RunForecast run = forecast_of({});
  EXPECT_NEAR(run.mean_time_to_interruption_h, 54 * 24 / 419.0, 1e-9);
  EXPECT_NEAR(run.checkpoint_stops_s, 2.835, 0.001);  // 5.67 TB at 2 TB/s
  EXPECT_GT(run.effective_share_percent, 89);
  EXPECT_LT(run.effective_share_percent, 91);
  EXPECT_LT(run.effective_share_p10_percent, run.effective_share_percent);
  EXPECT_GT(run.effective_share_p90_percent, run.effective_share_percent);
  EXPECT_LT(run.days_p10, run.days);
  EXPECT_GT(run.days_p90, run.days);
}

TEST(RunForecast, WithoutInterruptionsTakesTheTimeOfItsSteps) {
  const Result<RunForecast> run = forecast_run({}, large_job(), kMonth);
  ASSERT_TRUE(run.ok()) << run.error().message();
  EXPECT_EQ(run->effective_share_percent, 100);
  EXPECT_EQ(run->days, 30);
  EXPECT_NEAR(run->days_p10, 28, 0.2);
  EXPECT_NEAR(run->days_p90, 33, 0.3);
  EXPECT_EQ(run->interruptions, 0);
}

// Every 100 steps of 5 s it evaluates 40 batches of 1.5 s: 560 s for 500; a checkpoint stands behind every 200 steps.
TEST(RunForecast, EvaluatesAndSavesAsTheJobSays) {
  RunJob job = large_job();
  job.forward_s = 1.5;
  job.evaluation_interval = 100;
  job.evaluation_batches = 40;
  job.save_interval = 200;
  EXPECT_DOUBLE_EQ(forecast_of({}, job).days_without_losses, 30 * 560.0 / 500);
  EXPECT_DOUBLE_EQ(forecast_of({}, job).checkpoint_interval_min * 60, 1000);
  EXPECT_EQ(forecast_of({.interval_s = 600}, job).checkpoint_interval_min, 10);
  EXPECT_EQ(forecast_of({}, job).checkpoint_mode, "sync");
  const std::vector<RegularStop> stops = regular_stops({}, job);
  ASSERT_EQ(stops.size(), 2U);
  EXPECT_EQ(stops[0], (RegularStop{"evaluation", 100, 60}));
  EXPECT_EQ(stops[1], (RegularStop{"checkpoint", 200, forecast_of({}, job).checkpoint_stops_s}));
  job.saves_asynchronously = true;
  EXPECT_EQ(forecast_of({}, job).checkpoint_mode, "async");
  EXPECT_EQ(forecast_of({.mode = CheckpointMode::sync}, job).checkpoint_mode, "sync");
  EXPECT_TRUE(regular_stops({}, large_job()).empty());
}

TEST(RunForecast, OfFasterCheckpointsLosesLess) {
  const double sync = forecast_of({.storage_GBps = 100}).effective_share_percent;
  const double async =
      forecast_of({.mode = CheckpointMode::async, .storage_GBps = 100}).effective_share_percent;
  const double memory = forecast_of({.mode = CheckpointMode::memory}).effective_share_percent;
  EXPECT_LT(sync, async);
  EXPECT_LT(async, memory);
  EXPECT_LT(forecast_of({.restart_s = 1800}).effective_share_percent,
            forecast_of({}).effective_share_percent);
}

// Nodes in repair are Poisson-distributed: without a spare one a job trains while none is.
TEST(RunForecast, WaitsForNodesInRepair) {
  RunJob job = large_job();
  job.n_gpus = job.writers = 512;
  job.replicas = 64;  // a node each
  const double per_day = 24 * (512 * 268.0 / (16384 * 54 * 24) + 64 * 53.0 / (2048 * 54 * 24));
  const RunForecast none = forecast_of({.spare_nodes = 0}, job);
  EXPECT_NEAR(none.waiting_percent, 100 * (1 - std::exp(-per_day)), 1e-6);
  const RunForecast elastic = forecast_of({.spare_nodes = 0, .elastic = true}, job);
  EXPECT_NEAR(elastic.waiting_percent, 100 * per_day / 64, 1e-6);
  const RunForecast enough = forecast_of({.spare_nodes = 20}, job);
  EXPECT_NEAR(enough.waiting_percent, 0, 1e-6);
  EXPECT_EQ(enough.held_gpus, 512 + 160);
  EXPECT_EQ(forecast_of({}, job).waiting_percent, 0);
}

TEST(RunForecast, SaysWhereMoreGpusStopHelping) {
  const RunForecast run = forecast_of({});
  ASSERT_EQ(run.scale.size(), 6U);
  EXPECT_EQ(run.scale[2].n_gpus, 16384U);
  EXPECT_NEAR(run.scale[2].days, run.days, 1e-9);
  for (std::size_t i = 1; i < run.scale.size(); ++i)
    EXPECT_LT(run.scale[i].effective_share_percent, run.scale[i - 1].effective_share_percent);
  // A job that is down for R at each of n interruptions in M1 trains most on about M1 / R GPUs.
  EXPECT_NEAR(run.most_useful_gpus, 50677 / 0.25, 0.01 * 50677 / 0.25);  // hours of a GPU over 15 minutes
}

TEST(RunForecast, RefusesWhatGetsNowhere) {
  const auto error_of = [](const Recovery& recovery) {
    const Result<RunForecast> run = forecast_run({default_failures(), recovery}, large_job(), kMonth);
    return run.ok() ? std::string{} : run.error().message();
  };
  EXPECT_THAT(error_of({.restart_s = 1e6}), testing::HasSubstr("the run gets nowhere"));
  EXPECT_THAT(error_of({.mode = CheckpointMode::async, .interval_s = 1, .storage_GBps = 10}),
              testing::HasSubstr("a checkpoint is due before the last one is safe"));
}

// A log of a job whose rates and downtimes are known: the band holds the share that they come to.
TEST(RunForecast, FittedFromALogHoldsTheTrueShare) {
  constexpr double kPerHour[] = {0.06, 0.03, 0.01}, kDownMin[] = {20, 12, 45};
  const char* const kNames[] = {"gpu", "software", "switch"};
  constexpr double kScatter = 0.5, kLogHours = 500;  // about 50 interruptions
  RunJob job = large_job();
  job.n_gpus = job.writers = 1024;
  const Recovery recovery{.interval_s = 1800, .storage_GBps = 200};
  const double all = 0.1 / 3600;
  double chance = 0, drawn = 0;
  std::mt19937_64 truth{7};
  std::normal_distribution<double> normal;
  for (int i = 0; i < 300'000; ++i) {
    for (int c = 0; c < 3; ++c) {
      chance += kPerHour[c] * std::exp(-all * 60 * kDownMin[c] * std::exp(kScatter * normal(truth)));
      drawn += kPerHour[c];
    }
  }
  const double share =
      100 * effective_share({1 / all, job.checkpoint_bytes / 200e9, 0, chance / drawn}, *recovery.interval_s);
  int held = 0;
  for (int seed = 0; seed < 200; ++seed) {
    std::mt19937_64 random{1000U + static_cast<unsigned>(seed)};
    std::exponential_distribution<double> until{0.1};
    std::discrete_distribution<int> which{kPerHour[0], kPerHour[1], kPerHour[2]};
    std::normal_distribution<double> scatter;
    std::string log = "time_h,n_gpus,cause,downtime_min\n";
    double hours = until(random);
    for (; hours < kLogHours; hours += until(random)) {
      const int c = which(random);
      log += fmt::format("{:.6f},1024,{},{:.3f}\n", hours, kNames[c],
                         kDownMin[c] * std::exp(kScatter * scatter(random)));
    }
    log += fmt::format("{},1024,end,\n", kLogHours);
    const Result<FailureRates> rates = parse_failure_log(log, "made.csv");
    ASSERT_TRUE(rates.ok()) << rates.error().message();
    const Result<RunForecast> run = forecast_run({*rates, recovery}, job, kMonth);
    ASSERT_TRUE(run.ok()) << run.error().message();
    if (run->effective_share_p10_percent <= share && share <= run->effective_share_p90_percent) ++held;
  }
  EXPECT_GE(held, 150);
  EXPECT_LE(held, 180);
  RecordProperty("held_of_200", held);
}

}  // namespace
}  // namespace stepcast::run_forecast_test
