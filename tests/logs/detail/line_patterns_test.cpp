#include "stepcast/logs/detail/line_patterns.h"

#include <algorithm>
#include <cctype>
#include <string_view>

#include <gtest/gtest.h>

namespace stepcast::line_patterns_test {
namespace {

using detail::LinePattern;
using detail::patterned_line;

TEST(LinePatterns, RowsHaveMarkersInLowerCaseAndOneKindOfFigure) {
  for (const LinePattern& row : detail::line_patterns().rows) {
    EXPECT_FALSE(row.marker.empty()) << to_string(row.format);
    EXPECT_TRUE(std::ranges::none_of(row.marker, [](unsigned char c) { return std::isupper(c) != 0; }))
        << row.marker;
    const bool has_time = !row.ms.empty() || !row.seconds.empty() || !row.tqdm.empty() ||
                          !row.per_second.empty() || !row.work.empty() || !row.mean_seconds.empty();
    EXPECT_TRUE(has_time || !row.tokens_per_s_per_gpu.empty() || !row.samples_per_s.empty()) << row.marker;
  }
}

TEST(LinePatterns, ANumberStandsBehindItsText) {
  const LinePattern pattern{.step = "step:", .seconds = "time:|took", .tflops = "tflops"};
  const auto told = patterned_line(pattern, "step: 7 took 2.5 s, tflops=180");
  ASSERT_TRUE(told);
  EXPECT_EQ(told->step.step, 7U);
  EXPECT_DOUBLE_EQ(told->step.time_ms, 2500);
  EXPECT_DOUBLE_EQ(told->half_digit_share, 0.05 / 2.5);
  EXPECT_FLOAT_EQ(told->step.tflops_per_gpu, 180);
  EXPECT_FALSE(patterned_line(pattern, "step: 7 took long"));
  EXPECT_FALSE(patterned_line(pattern, "took 2.5 s"));
}

// Epochs begin anew; tokens of a step over tokens per second are its time; a mean over all steps is kept apart.
TEST(LinePatterns, OfEpochsOfWorkAndOfMeans) {
  const LinePattern epochs{
      .step = "[*] ", .epoch = "Epoch [", .of = "/*] ", .work = "wpb=", .work_per_s = "wps="};
  const auto told = patterned_line(epochs, "Epoch [2][50/100] wps=4000, wpb=8000");
  ASSERT_TRUE(told);
  EXPECT_EQ(told->step.step, 250U);
  EXPECT_DOUBLE_EQ(told->step.time_ms, 2000);
  const LinePattern mean{.step = "step:", .mean_seconds = "s/it:", .mean_per_s = "it/s:"};
  EXPECT_DOUBLE_EQ(patterned_line(mean, "step: 7 it/s: 0.5")->mean_ms, 2000);
  EXPECT_DOUBLE_EQ(patterned_line(mean, "step: 7 s/it: 3")->mean_ms, 3000);
  EXPECT_DOUBLE_EQ(patterned_line(mean, "step: 7 s/it: 3")->step.time_ms, 0);
}

TEST(LinePatterns, OrBeforeItOrBetweenTwo) {
  const LinePattern bar{.step = "#/* [", .ms = "# ms"};
  const auto told = patterned_line(bar, "a/b 45/99 [01:20, 12.5 ms]");
  ASSERT_TRUE(told);
  EXPECT_EQ(told->step.step, 45U);
  EXPECT_DOUBLE_EQ(told->step.time_ms, 12.5);
  const LinePattern logged{.step = "/*, Running", .samples_per_s = "Rate"};
  const auto rate = patterned_line(logged, "[Rank 0] 0/20, RunningAvg=3, Rate=2");
  ASSERT_TRUE(rate);
  EXPECT_EQ(rate->step.step, 20U);
  EXPECT_FLOAT_EQ(rate->step.rate, 2);
}

TEST(LinePatterns, ATimeAndSamplesPerSecondGiveTheBatch) {
  const auto told =
      patterned_line({.seconds = "time", .samples_per_s = "samples/sec"}, "time 2.0, samples/sec 32.1");
  ASSERT_TRUE(told);
  EXPECT_EQ(told->step.batch_sequences, 64U);
}

}  // namespace
}  // namespace stepcast::line_patterns_test
