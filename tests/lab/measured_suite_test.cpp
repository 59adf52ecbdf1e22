#include <algorithm>
#include <string>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lab/suites.h"
#include "tests/support/paths.h"
#include "tests/support/temporary_folder.h"

namespace stepcast::measured_suite_test {
namespace {

const TestScore* test_named(const SuiteResult& result, std::string_view name) {
  const auto found = std::ranges::find(result.tests, name, &TestScore::test);
  return found == result.tests.end() ? nullptr : &*found;
}

TEST(MeasuredSuite, ScoresTheGpusOfTheSourceTreeWhereTheDataHasNone) {
  const test::TemporaryFolder empty;
  const auto result = validate_measured(empty.path(), {.threads = 2});
  ASSERT_TRUE(result.ok()) << result.error().message();
  ASSERT_FALSE(result->tests.empty());
  EXPECT_EQ(result->tests.front().test, "kernels_of_other_gpu");
  for (const char* test : {"described_steps", "steps_of_other_gpu"}) {
    const TestScore* score = test_named(*result, test);
    ASSERT_NE(score, nullptr) << test;
    EXPECT_EQ(score->sets.size(), 2U) << test;
    for (const SetScore& set : score->sets) EXPECT_EQ(set.rows.size(), 9U) << test << " " << set.set;
  }
  // A step that the host decides says little of the GPU: DLRMs, and most of those in bf16.
  EXPECT_EQ(std::ranges::count_if(result->skipped,
                                  [](const Skipped& s) { return s.why.starts_with("the host decides"); }),
            57);
  const TestScore* ours = test_named(*result, "cross_device");
  const TestScore* unchanged = test_named(*result, "cross_device_unchanged");
  ASSERT_NE(ours, nullptr);
  ASSERT_NE(unchanged, nullptr);
  EXPECT_LT(ours->overall.mape, unchanged->overall.mape);
  EXPECT_LT(test_named(*result, "kernels_of_other_gpu")->overall.mape, 25);
}

}  // namespace
}  // namespace stepcast::measured_suite_test
