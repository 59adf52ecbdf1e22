#include "stepcast/analyze/compare.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stepcast::compare_test {
namespace {

using ::testing::ElementsAre;

Forecast made(double step_ms, double gemm_ms, double idle_ms) {
  Forecast f;
  f.step_time_ms = step_ms;
  f.n_gpus = 8;
  ForecastClass c;
  c.name = "rank 0";
  c.window_ms = step_ms;
  c.computation_by_class_ms = {{"gemm", gemm_ms}, {"elementwise", 1}};
  c.idle_ms = {{"cpu", idle_ms}};
  f.classes = {c};
  return f;
}

TEST(Compare, ListsTheLargestDifferenceFirst) {
  Forecast a = made(20, 10, 4), b = made(16, 9, 1);
  a.layout = {{"tensor_parallel", 4.0}};
  b.layout = {{"tensor_parallel", 8.0}};
  a.collectives = {{.name = "all_reduce", .ordinal = 1, .transfer_us = 500, .longest_wait_us = 100}};
  b.collectives = {{.name = "all_reduce", .ordinal = 1, .transfer_us = 500, .longest_wait_us = 400},
                   {.name = "all_reduce", .ordinal = 2, .transfer_us = 50}};
  const Comparison c = compare(a, b);
  EXPECT_DOUBLE_EQ(c.step_difference_ms, -4);
  EXPECT_DOUBLE_EQ(*c.step_difference_percent, -20);
  EXPECT_THAT(c.settings, ElementsAre("tensor_parallel: 4 -> 8"));
  EXPECT_THAT(c.parts, ElementsAre(Difference{"idle: cpu", 4, 1}, Difference{"computation: gemm", 10, 9}));
  EXPECT_THAT(c.rank_classes, ElementsAre(Difference{"rank 0", 20, 16}));
  // A collective that only one of them has took no time in the other; what is the same is left out.
  EXPECT_THAT(c.collectives, ElementsAre(Difference{"all_reduce #1 wait", 0.1, 0.4},
                                         Difference{"all_reduce #2 transfer", 0, 0.05}));
}

TEST(Compare, FindsNothingBetweenAForecastAndItself) {
  const Forecast f = made(20, 10, 4);
  const Comparison c = compare(f, f);
  EXPECT_DOUBLE_EQ(c.step_difference_ms, 0);
  EXPECT_TRUE(c.settings.empty() && c.parts.empty() && c.rank_classes.empty() && c.collectives.empty() &&
              c.critical_path.empty());
}

// A keeps the two longest of a path of 10 ms: that it lacks "third" says nothing of it. B holds its whole path, so "first"
// took no time there.
TEST(Compare, SaysNothingOfWhatOneSideCutOff) {
  Forecast a = made(20, 10, 4), b = made(16, 9, 1);
  a.critical_path = {.length_ms = 10, .by_name = {{"first", 4, 1}, {"second", 3, 1}}};
  b.critical_path = {.length_ms = 7, .by_name = {{"second", 5, 1}, {"third", 2, 1}}};
  a.n_collectives = 40;
  a.collectives = {{.name = "all_reduce", .ordinal = 1, .transfer_us = 500}};
  b.n_collectives = 1;
  b.collectives = {{.name = "all_gather", .ordinal = 1, .transfer_us = 50}};
  const Comparison c = compare(a, b);
  EXPECT_THAT(c.critical_path,
              ElementsAre(Difference{"name: first", 4, 0}, Difference{"name: second", 3, 5}));
  EXPECT_THAT(c.collectives, ElementsAre(Difference{"all_reduce #1 transfer", 0.5, 0}));
}

TEST(Compare, WritesThousandsApart) {
  const Forecast a = made(2015.52, 1010, 4), b = made(1234567.89, 9, 1);
  EXPECT_THAT(compare(a, b).verdict, ::testing::HasSubstr("(1,234,567.9 against 2,015.5 ms)"));
  EXPECT_THAT(compare(b, made(999.94, 1, 1)).verdict, ::testing::HasSubstr("(999.9 against 1,234,567.9 ms)"));
}

}  // namespace
}  // namespace stepcast::compare_test
