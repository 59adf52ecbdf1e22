#include "stepcast/logs/logged_times.h"

#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stepcast::logged_times_test {
namespace {

using ::testing::HasSubstr;

std::string megatron(int step, double ms, const std::string& before = "") {
  return fmt::format(
      "{} iteration {:8d}/ 500 | elapsed time per iteration (ms): {:.1f} | global batch size: 8 |\n", before,
      step, ms);
}

LoggedTimes times_of(const std::string& text, const LoggedWork& work = {}) {
  const auto log = parse_training_log(text, "made.log");
  EXPECT_TRUE(log.ok()) << log.error().message();
  const auto times = logged_times(*log, work);
  EXPECT_TRUE(times.ok()) << times.error().message();
  return *times;
}

TEST(LoggedTimes, LeavesOutWarmUpAndStalls) {
  std::string text = megatron(1, 9000) + megatron(2, 300);
  for (int i = 3; i <= 40; ++i) text += megatron(i, i == 20 ? 700 : i % 2 == 0 ? 101 : 99);
  const LoggedTimes t = times_of(text);
  EXPECT_EQ(t.warm_up, 2U);
  EXPECT_EQ(t.n, 37U);  // 40 less two and the one stall
  ASSERT_EQ(t.stalls.size(), 1U);
  EXPECT_EQ(t.stalls[0].step, 20U);
  EXPECT_NEAR(t.stalls[0].lost_ms, 600, 2);
  EXPECT_NEAR(t.median_ms, 99, 2.1);
  // (18 x 101 + 19 x 99 + 700) / 38 = 4399 / 38
  EXPECT_NEAR(t.mean_ms, 4399.0 / 38, 1e-9);
}

// The mean over five steps: a stall of 500 ms is 100 ms of it.
TEST(LoggedTimes, CountsStepsBehindALine) {
  std::string text;
  for (int i = 1; i <= 30; ++i) text += megatron(5 * i, i == 15 ? 200 : 100);
  const LoggedTimes t = times_of(text);
  EXPECT_DOUBLE_EQ(t.steps_per_line, 5);
  ASSERT_EQ(t.stalls.size(), 1U);
  EXPECT_NEAR(t.stalls[0].lost_ms, 500, 1e-9);
}

TEST(LoggedTimes, SeesASlowDrift) {
  std::string text;
  for (int i = 1; i <= 320; ++i) text += megatron(i, 1000 + 0.5 * i);  // 16 % from begin to end
  const LoggedTimes t = times_of(text);
  EXPECT_TRUE(t.stalls.empty());
  EXPECT_EQ(t.warm_up, 0U);
  // 31 of 32 blocks of 10 steps: 155 ms of a median of 1080.25
  EXPECT_NEAR(t.trend_percent.value(), 100 * 155 / 1080.25, 1e-6);
}

TEST(LoggedTimes, TellsLateRepeatsFromARestart) {
  // Three ranks, not in step with each other.
  const LoggedTimes repeated =
      times_of(megatron(1, 100) + megatron(2, 100) + megatron(1, 101) + megatron(3, 100) + megatron(2, 102) +
               megatron(4, 100) + megatron(5, 100));
  EXPECT_TRUE(repeated.restarts.empty());
  EXPECT_EQ(repeated.duplicates, 2U);
  const LoggedTimes restarted =
      times_of(megatron(1, 100) + megatron(2, 100) + megatron(3, 100) + megatron(2, 101) + megatron(3, 102) +
               megatron(4, 100) + megatron(5, 100));
  ASSERT_EQ(restarted.restarts.size(), 1U);
  EXPECT_EQ(restarted.restarts[0].last_step, 3U);
  EXPECT_EQ(restarted.restarts[0].next_step, 2U);
  EXPECT_EQ(restarted.duplicates, 0U);
}

// 20 s lie between lines whose steps take 1 s: an evaluation that the times leave out.
TEST(LoggedTimes, SeesWhatTheClockSays) {
  std::string text;
  int second = 0;
  for (int i = 1; i <= 30; ++i) {
    second += i == 16 ? 21 : 1;
    if (i == 16) text += " validation loss at iteration 15\n";
    text += megatron(i, 1000, fmt::format(" [2026-01-02 03:{:02}:{:02}]", second / 60, second % 60));
  }
  const LoggedTimes t = times_of(text);
  ASSERT_EQ(t.stalls.size(), 1U);
  EXPECT_TRUE(t.stalls[0].between_steps);
  EXPECT_EQ(t.stalls[0].cause, LogEvent::evaluation);
  EXPECT_NEAR(t.stalls[0].lost_ms, 20000, 1);
}

// step_s = samples x tokens / (tokens per second and GPU x GPUs): 8 x 1024 / (512 x 4) = 4 s.
TEST(LoggedTimes, MakesTimesOfRates) {
  std::string text;
  for (int i = 1; i <= 20; ++i) text += fmt::format("step: {:2} loss: 1.0 tps: 512  mfu: N/A\n", i);
  EXPECT_DOUBLE_EQ(times_of(text, {.samples_per_step = 8, .tokens_per_step = 8192, .n_gpus = 4}).median_ms,
                   4000);
  const LoggedTimes rates = times_of(text);
  EXPECT_THAT(rates.why_no_time, HasSubstr("give --gbs, --seq and --gpus"));
  EXPECT_DOUBLE_EQ(rates.tokens_per_s_per_gpu, 512);
}

std::string at_second(double seconds) {
  const int s = static_cast<int>(seconds);
  return fmt::format(" [2026-01-02 03:{:02}:{:02}.{:03}]", s / 60, s % 60,
                     static_cast<int>(seconds * 1e3) % 1000);
}

// Somebody's program prints seconds as milliseconds: 2.5 where lines are 2.5 s from each other.
TEST(LoggedTimes, TakesTheClockWhereItContradictsTheLines) {
  std::string text;
  for (int i = 1; i <= 40; ++i) text += megatron(i, 2.5, at_second(2.5 * i));
  const LoggedTimes t = times_of(text);
  ASSERT_TRUE(t.contradiction.has_value());
  EXPECT_DOUBLE_EQ(t.contradiction->lines_ms, 2.5);
  EXPECT_NEAR(t.contradiction->other_ms, 2500, 1);
  EXPECT_NEAR(t.median_ms, 2500, 1);
  EXPECT_TRUE(t.from_clock);
  EXPECT_FALSE(t.confirmed);
}

TEST(LoggedTimes, AreConfirmedByTheClock) {
  std::string text;
  for (int i = 1; i <= 40; ++i) text += megatron(i, 2500, at_second(2.5 * i));
  EXPECT_TRUE(times_of(text).confirmed);
  EXPECT_FALSE(times_of(text).contradiction);
  // Lines that a buffer held back come ten at a time: their distances say nothing, all of them do.
  std::string bursts;
  for (int i = 1; i <= 80; ++i) {
    const int ten = i / 10;
    bursts += megatron(i, 2500, at_second(25.0 * ten));
  }
  EXPECT_FALSE(times_of(bursts).contradiction);
  EXPECT_DOUBLE_EQ(times_of(bursts).median_ms, 2500);
}

// 16,384 tokens on 2 GPUs at 4096 tokens/s each are 2 s.
TEST(LoggedTimes, AreRefusedWhereTokensPerSecondContradictThem) {
  std::string text;
  for (int i = 1; i <= 20; ++i)
    text += fmt::format(
        " iteration {} / 50 | elapsed time per iteration (ms): 2.0 | tokens per gpu per second (tgs): 4096 "
        "|\n",
        i);
  LoggedWork work;
  work.tokens_per_step = 16384;
  work.n_gpus = 2;
  const LoggedTimes t = times_of(text, work);
  EXPECT_THAT(t.why_no_time, HasSubstr("the lines give 2.0 ms per step, but their tokens per second"));
  EXPECT_THAT(t.why_no_time, HasSubstr("give 2000.0 ms"));
  EXPECT_EQ(t.median_ms, 0);
  work.is_assumed = true;
  EXPECT_DOUBLE_EQ(times_of(text, work).median_ms, 2);
}

// Whole seconds say what a step of 740 ms takes, over many of them.
TEST(LoggedTimes, ReadShortStepsFromACoarseClock) {
  std::string text;
  for (int i = 1; i <= 200; ++i) {
    const int s = static_cast<int>(0.74 * i);
    text += fmt::format("[titan] 2026-03-01 10:{:02}:{:02} - root - step: {} loss: 2 tps: 512 mfu: 3%\n",
                        s / 60, s % 60, i);
  }
  EXPECT_NEAR(times_of(text).median_ms, 740, 15);
  EXPECT_TRUE(times_of(text).from_clock);
}

// A column `elapsed_time` of times of steps is no clock: 2.5, 2.7, 2.5 are not 200 ms.
TEST(LoggedTimes, TakeNoClockThatGoesBack) {
  std::string text = "step,loss,elapsed_time\n";
  for (int i = 1; i <= 30; ++i) text += fmt::format("{},2.0,{}\n", i, i % 2 == 0 ? 2.7 : 2.5);
  EXPECT_THAT(times_of(text).why_no_time, HasSubstr("it is not a clock"));
  // One that names its unit counts, whatever is beside it.
  text = "step,seconds_per_iteration,elapsed_time\n";
  for (int i = 1; i <= 30; ++i) text += fmt::format("{},2.5,{}\n", i, i * 0.2);
  EXPECT_DOUBLE_EQ(times_of(text).median_ms, 2500);
  EXPECT_FALSE(times_of(text).contradiction);
}

TEST(LoggedTimes, FindChangesOfSpeed) {
  std::string text;
  for (int i = 1; i <= 200; ++i)
    text += megatron(i, (i < 121 ? 1000 : 1200) + i % 3 - (i == 150 ? -2000 : 0));
  const LoggedTimes t = times_of(text);
  ASSERT_EQ(t.changes.size(), 1U);
  EXPECT_EQ(t.changes[0].step, 121U);
  EXPECT_NEAR(t.changes[0].before_ms, 1001, 1);
  EXPECT_NEAR(t.changes[0].after_ms, 1201, 1);
  EXPECT_NEAR(t.median_ms, 1001, 1);  // of the longest stretch
  EXPECT_EQ(t.stretch_last_step, 120U);
  EXPECT_EQ(t.stalls.size(), 1U);
  // There and back.
  text.clear();
  for (int i = 1; i <= 300; ++i) text += megatron(i, i > 100 && i <= 140 ? 1300 : 1000);
  EXPECT_EQ(times_of(text).changes.size(), 2U);
}

TEST(LoggedTimes, CountsTheMostFrequentBatchAlone) {
  std::string text;
  for (int i = 1; i <= 10; ++i)
    text +=
        fmt::format("iteration {} / 9 | elapsed time per iteration (ms): 50.0 | global batch size: 4 |\n", i);
  for (int i = 11; i <= 40; ++i) text += megatron(i, 100);
  const LoggedTimes t = times_of(text);
  EXPECT_EQ(t.other_batches, 10U);
  EXPECT_DOUBLE_EQ(t.median_ms, 100);
  EXPECT_EQ(t.batch_sequences, 8U);
}

TEST(TrainingLog, RefusesWhatIsNone) {
  EXPECT_THAT(parse_training_log("", "a.log").error().message(), HasSubstr("a.log: found an empty file"));
  EXPECT_THAT(parse_training_log("hello\n", "a.log").error().message(),
              HasSubstr("found no line with a step time among 1"));
  EXPECT_THAT(parse_training_log(std::string_view{"\0\1\2", 3}, "a.log").error().message(),
              HasSubstr("binary data"));
  EXPECT_THAT(parse_training_log("step,step_time\n1,2\n", "a.csv").error().message(),
              HasSubstr("a column `step_time` without a unit, expected `step_time_ms` or `step_time_s`"));
}

}  // namespace
}  // namespace stepcast::logged_times_test
