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

TEST(Compare, BeginsWithDifferentJobs) {
  Forecast a = made(20, 10, 4), b = made(16, 9, 1);
  a.model = "gpt2";
  b.model = "llama-3-8b";
  a.parameters = 124'000'000;
  b.parameters = 8'030'000'000;
  const Comparison c = compare(a, b);
  EXPECT_EQ(
      c.different_jobs,
      "These are different jobs: gpt2 (0.124 billion parameters) and llama-3-8b (8.03 billion parameters).");
  EXPECT_THAT(c.verdict, ::testing::StartsWith(c.different_jobs + " B takes 20.0 % less than A"));
  a.step_time_ms = 0;
  EXPECT_EQ(compare(a, b).verdict, c.different_jobs + " A takes no time");
}

// A folder can have another name than its model, and another layout pads the vocabulary: 124.0 and 124.7 million.
TEST(Compare, TakesOtherNamesAndBatchesForTheSameJob) {
  Forecast a = made(20, 10, 4), b = made(16, 9, 1);
  a.model = "gpt2";
  b.model = "checkpoints/42";
  a.parameters = 124'000'000;
  b.parameters = 124'700'000;
  a.layout = {{"global_batch_sequences", 64.0}};
  b.layout = {{"global_batch_sequences", 128.0}};
  EXPECT_EQ(compare(a, b).different_jobs, "");
  b.parameters.reset();  // a log may not have them
  EXPECT_EQ(compare(a, b).different_jobs, "");
  EXPECT_THAT(compare(a, b).verdict, ::testing::StartsWith("B takes 20.0 % less than A"));
}

// Of 10 ms of kernels, 3 ms look up embeddings: a recorded step of a recommendation model.
TEST(Compare, TellsARecordedRecommendationModelFromATraining) {
  Forecast training = made(20, 10, 4), recorded = made(16, 6, 1);
  training.kind = "transformer";
  training.model = "gpt2";
  recorded.kind = "replay";
  recorded.traces = "run_1";
  EXPECT_EQ(compare(training, recorded).different_jobs, "");
  recorded.classes[0].computation_by_class_ms.push_back({"embedding", 3});
  EXPECT_EQ(
      compare(training, recorded).different_jobs,
      "These are different jobs: gpt2 (a language or vision model) and run_1 (a recommendation model).");
  EXPECT_EQ(compare(recorded, recorded).different_jobs, "");
  recorded.classes[0].computation_by_class_ms.push_back({"attention", 1});
  EXPECT_EQ(compare(training, recorded).different_jobs, "");
}

}  // namespace
}  // namespace stepcast::compare_test
