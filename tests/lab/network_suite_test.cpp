#include <gtest/gtest.h>

#include "lab/suites.h"
#include "tests/support/data.h"
#include "tests/support/temporary_folder.h"

namespace stepcast::network_suite_test {
namespace {

TEST(NetworkSuite, NamesTracesThatAreMissing) {
  const test::TemporaryFolder folder;
  const Result<SuiteResult> result = validate_networks(folder.path());
  ASSERT_TRUE(result.ok()) << result.error().message();
  EXPECT_TRUE(result->tests.empty());
  EXPECT_EQ(result->skipped.size(), 5U);
}

TEST(NetworkSuite, GpuTimeComesCloserThanByTheUtilisationOfOtherTraces) {
  SKIP_WITHOUT_DATA();
  const Result<SuiteResult> result = validate_networks(*test::measured_data());
  ASSERT_TRUE(result.ok()) << result.error().message();
  ASSERT_EQ(result->tests.size(), 2U);
  EXPECT_EQ(result->tests[0].sets.size(), 5U);
  EXPECT_LT(result->tests[0].pooled.mape, result->tests[1].pooled.mape);
}

}  // namespace
}  // namespace stepcast::network_suite_test
