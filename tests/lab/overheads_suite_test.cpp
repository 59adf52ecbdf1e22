#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lab/suites.h"
#include "tests/support/fails_with.h"
#include "tests/support/temporary_folder.h"

namespace stepcast::overheads_suite_test {
namespace {

TEST(OverheadsSuite, LearnsFromOtherJobsOfTheMachine) {
  const test::TemporaryFolder folder;
  const auto result = validate_overheads(folder.path() / "measured", {.threads = 2});
  ASSERT_TRUE(result.ok()) << result.error().message();
  ASSERT_EQ(result->tests.size(), 2U);
  const TestScore& others = result->tests.front();
  EXPECT_EQ(others.test, "other_jobs");
  EXPECT_EQ(others.pooled.n, 14U) << "seven jobs each of the H100 and the H200";
  EXPECT_EQ(others.sets.front().n_fit, 6U);
  EXPECT_EQ(result->tests.back().pooled.n, 84U);
}

TEST(OverheadsSuite, SaysWhereThereIsNothingToLearnFrom) {
  const test::TemporaryFolder folder;
  EXPECT_THAT(validate_overheads(folder.path(), {.threads = 1}), test::FailsWith("no two profiler traces"));
}

}  // namespace
}  // namespace stepcast::overheads_suite_test
