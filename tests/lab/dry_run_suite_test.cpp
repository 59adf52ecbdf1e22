#include <algorithm>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lab/shipped_data.h"
#include "lab/suites.h"
#include "tests/support/data.h"
#include "tests/support/temporary_folder.h"

namespace stepcast::dry_run_suite_test {
namespace {

const TestScore& test_of(const SuiteResult& result, std::string_view name) {
  return *std::ranges::find(result.tests, name, &TestScore::test);
}

TEST(DryRunSuite, ProgramsComeCloserThanTheOtherGpuAndThanTheirDescriptions) {
  if (!shipped_data_file("measured/README.md")) GTEST_SKIP() << "data/measured is not here";
  const test::TemporaryFolder nothing;
  const auto published = test::measured_data();
  const Result<SuiteResult> result = validate_dry_run(published.value_or(nothing.path()));
  ASSERT_TRUE(result.ok()) << result.error().message();
  const TestScore& steps = test_of(*result, "dry_run_steps");
  EXPECT_EQ(steps.pooled.n, 84U);
  EXPECT_LT(steps.pooled.mape, 12);
  EXPECT_LT(test_of(*result, "dry_run_host_decides").pooled.mape, 15);
  EXPECT_LT(test_of(*result, "dry_run_peak_memory").pooled.mape, 2);
  const TestScore& other = test_of(*result, "dry_run_other_gpu");
  EXPECT_EQ(other.pooled.n, 84U);
  EXPECT_LT(steps.pooled.mape, other.pooled.mape);
  if (!published) {
    ASSERT_EQ(result->skipped.size(), 1U);
    EXPECT_EQ(result->skipped.front().what, "dry_run_published");
    return;
  }
  EXPECT_TRUE(result->skipped.empty());
  const TestScore& programs = test_of(*result, "dry_run_published");
  EXPECT_GE(programs.pooled.n, 12U);
  EXPECT_LT(programs.pooled.mape, 12);
  EXPECT_LT(programs.pooled.mape, test_of(*result, "dry_run_published_described").pooled.mape);
}

}  // namespace
}  // namespace stepcast::dry_run_suite_test
