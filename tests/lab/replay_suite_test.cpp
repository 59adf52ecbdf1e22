#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lab/suites.h"
#include "tests/support/trace_files.h"

namespace stepcast::replay_suite_test {
namespace {

using fixtures::TraceFolder;
using ::testing::HasSubstr;

const TestScore& test_named(const SuiteResult& result, const std::string& name) {
  for (const TestScore& test : result.tests) {
    if (test.test == name) return test;
  }
  ADD_FAILURE() << "no test " << name;
  return result.tests.front();
}

TEST(ReplaySuite, ScoresEverySetEveryRankAndEveryStep) {
  const TraceFolder folder;
  test::GeneratorOptions options;
  options.ranks = 2;
  options.steps = 2;
  const test::GeneratedJob pair = test::generate_job(options);
  folder.write("pair/rank0.json.gz", pair.ranks[0].recorded);
  folder.write("pair/rank1.json", pair.ranks[1].recorded);
  options.ranks = 1;
  options.steps = 1;
  const test::GeneratedJob single = test::generate_job(options);
  folder.write("singles/worker0.a.json", single.ranks[0].recorded);
  folder.write("singles/worker0.b.json", single.ranks[0].recorded);
  folder.write("graphs/et_rank0.json", single.ranks[0].execution_trace);

  const Result<SuiteResult> result = validate_replay(folder.path(), {.threads = 1, .protocol = {}});
  ASSERT_TRUE(result.ok()) << result.error().message();
  ASSERT_FALSE(result->tests.empty());
  const TestScore& steps = result->tests.front();
  EXPECT_EQ(steps.test, "step_time");
  ASSERT_EQ(steps.sets.size(), 3U);
  EXPECT_EQ(steps.sets[0].set, "pair");
  EXPECT_EQ(steps.sets[0].metrics.n, 4U);  // 2 ranks x 2 steps
  EXPECT_EQ(steps.sets[0].rows[0].row, "rank 0 step 10");
  EXPECT_EQ(steps.sets[1].set, "singles/worker0.a");
  EXPECT_LT(steps.overall.mape, 1);
  EXPECT_EQ(test_named(*result, "gpu_window").overall.n, 6U);
  EXPECT_EQ(test_named(*result, "global_window").overall.n, 2U);  // of the pair only
  EXPECT_EQ(test_named(*result, "naive").overall.n, 6U);
  EXPECT_GT(test_named(*result, "collective_waits").overall.n, 0U);
  EXPECT_EQ(test_named(*result, "time_with_a_cause").overall.n, 4U);
  EXPECT_LT(test_named(*result, "time_with_a_cause").overall.bias, 1e-9);
  const TestScore& starts = test_named(*result, "kernel_starts");
  EXPECT_FALSE(starts.relative);
  ASSERT_FALSE(starts.extras.empty());
  EXPECT_EQ(starts.extras[0].name, "worst_median_us");
  ASSERT_EQ(result->skipped.size(), 1U);
  EXPECT_EQ(result->skipped[0].what, "graphs/et_rank0");
}

TEST(ReplaySuite, SaysWhyThereIsNothingToScore) {
  const TraceFolder folder;
  EXPECT_THAT(validate_replay(folder.path()).error().message(), HasSubstr("no profiler trace here"));
  EXPECT_THAT(validate_replay(folder.path() / "none").error().message(), HasSubstr("no such file or folder"));
  EXPECT_THAT(validate_replay(folder.path(), {.threads = 1, .protocol = "refit"}).error().message(),
              HasSubstr("no protocol 'refit'"));
}

}  // namespace
}  // namespace stepcast::replay_suite_test
