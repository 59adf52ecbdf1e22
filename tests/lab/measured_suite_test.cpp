#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

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
  // All steps by description, DLRMs too; those that the host decides need its times.
  EXPECT_TRUE(result->skipped.empty());
  const auto n_and_error = [&](const char* test) {
    const TestScore* score = test_named(*result, test);
    return score == nullptr ? std::pair{std::size_t{}, 100.0}
                            : std::pair{std::size_t{score->overall.n}, score->overall.mape};
  };
  const auto [n, error] = n_and_error("described_all_steps");
  EXPECT_EQ(n, 84U);
  EXPECT_LT(error, 16);
  EXPECT_EQ(n_and_error("described_steps").first, 27U);
  EXPECT_EQ(n_and_error("described_host_decides").first, 57U);
  EXPECT_LT(n_and_error("described_bf16_transformers").second, 20);
  EXPECT_LT(error, n_and_error("steps_of_other_gpu").second);
  const TestScore* ours = test_named(*result, "cross_device");
  const TestScore* unchanged = test_named(*result, "cross_device_unchanged");
  ASSERT_NE(ours, nullptr);
  ASSERT_NE(unchanged, nullptr);
  EXPECT_LT(ours->overall.mape, unchanged->overall.mape);
  EXPECT_LT(test_named(*result, "kernels_of_other_gpu")->overall.mape, 25);
}

}  // namespace
}  // namespace stepcast::measured_suite_test
