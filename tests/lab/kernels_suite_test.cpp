#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>

#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lab/suites.h"
#include "tests/support/fails_with.h"
#include "tests/support/made_kernels.h"

namespace stepcast::kernels_suite_test {
namespace {

using ::testing::HasSubstr;

const TestScore* find(const SuiteResult& result, std::string_view name) {
  for (const TestScore& t : result.tests) {
    if (t.test == name) return &t;
  }
  return nullptr;
}

double extra(const TestScore& test, std::string_view name) {
  for (const ExtraMetric& e : test.extras) {
    if (e.name == name) return e.value;
  }
  return std::nan("");
}

class MadeKernels : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ =
        std::filesystem::path{::testing::TempDir()} / ("made_kernels_suite_" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
    std::ofstream{folder_ / "made-1.json"} << test::kMadePlatform;
    std::ofstream{folder_ / "made.csv"} << test::made_kernels_csv(true);
    options_.platforms = {{"Made-1", folder_ / "made-1.json"}};
  }
  void TearDown() override {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  std::filesystem::path folder_;
  SuiteOptions options_;
};

TEST_F(MadeKernels, ALawIsLearnedAndHeldAgainstRowsThatWereNotSeen) {
  const auto result = validate_kernels(folder_ / "made.csv", options_);
  ASSERT_TRUE(result.ok()) << result.error().message();
  ASSERT_FALSE(result->tests.empty());
  EXPECT_EQ(result->tests[0].test, "held_out_rows");
  ASSERT_EQ(result->tests[0].sets.size(), 2U);
  const SetScore& gemms = result->tests[0].sets[0];
  EXPECT_EQ(gemms.set, "Made-1/gemm/forward");
  EXPECT_EQ(gemms.group, "gemm fp16");
  EXPECT_EQ(gemms.metrics.n, 45U);
  EXPECT_GT(gemms.n_fit, 30U);
  EXPECT_LT(gemms.n_fit, 45U);
  EXPECT_LT(gemms.metrics.mape, 8);
  EXPECT_LT(result->tests[0].sets[1].metrics.mape, 5);
  EXPECT_THAT(gemms.rows.front().row, HasSubstr("made.csv:2 gemm fp16 forward m=512 n=512 k=512"));
  for (const char* name :
       {"random_rows", "held_out_hidden_size", "held_out_sequence_length", "beyond_range"}) {
    const TestScore* test = find(*result, name);
    ASSERT_NE(test, nullptr) << name;
    EXPECT_LT(test->overall.mape, 25) << name;
    EXPECT_EQ(extra(*test, "below_bound_n"), 0) << name;
    ASSERT_TRUE(test->overall.interval_coverage) << name;
  }
  // Every row is tested once where rows are held out, and only the largest beyond the range.
  EXPECT_EQ(find(*result, "held_out_hidden_size")->overall.n, 90U);
  EXPECT_LT(find(*result, "beyond_range")->overall.n, 40U);
}

TEST_F(MadeKernels, GivesTheSameOnAnyNumberOfThreads) {
  SuiteOptions one = options_, two = options_;
  one.threads = 1;
  two.threads = 2;
  const auto a = validate_kernels(folder_ / "made.csv", one), b = validate_kernels(folder_ / "made.csv", two);
  ASSERT_TRUE(a.ok() && b.ok());
  ASSERT_EQ(a->tests.size(), b->tests.size());
  for (std::size_t i = 0; i < a->tests.size(); ++i) {
    EXPECT_EQ(a->tests[i].overall.mape, b->tests[i].overall.mape) << a->tests[i].test;
  }
}

TEST_F(MadeKernels, ADeviceThatNobodyDescribesIsNamed) {
  const auto result = validate_kernels(folder_ / "made.csv");
  ASSERT_TRUE(result.ok());
  ASSERT_EQ(result->skipped.size(), 1U);
  EXPECT_EQ(result->skipped[0].what, "Made-1");
  EXPECT_EQ(result->skipped[0].n, 90U);
  EXPECT_THAT(result->skipped[0].why, HasSubstr("--platform GPU=FILE"));
}

TEST_F(MadeKernels, ImpossibleRowsAreCountedAndNotScored) {
  std::ofstream{folder_ / "fast.csv"} << test::made_kernels_csv(true)
                                      << "Made-1,gemm,forward,fp16,8192,8192,8192,,,,,10,,,,made\n";
  const auto result = validate_kernels(folder_ / "fast.csv", options_);
  ASSERT_TRUE(result.ok());
  ASSERT_EQ(result->skipped.size(), 1U);
  EXPECT_EQ(result->skipped[0].what, "Made-1/gemm/forward");
  EXPECT_THAT(result->skipped[0].why, HasSubstr("impossible"));
  EXPECT_EQ(result->tests[0].sets[0].metrics.n, 45U);
}

TEST_F(MadeKernels, TheShippedProtocolPricesWithThePlatformAsItIs) {
  options_.protocol = "shipped";
  const auto result = validate_kernels(folder_ / "made.csv", options_);
  ASSERT_TRUE(result.ok());
  ASSERT_EQ(result->tests.size(), 1U);
  EXPECT_EQ(result->tests[0].test, "shipped");
  EXPECT_EQ(result->tests[0].overall.n, 90U);
  EXPECT_EQ(result->tests[0].sets[0].n_fit, 0U);
}

TEST_F(MadeKernels, RefusesAnUnknownProtocolAndAMissingPlatform) {
  options_.protocol = "guess";
  EXPECT_THAT(validate_kernels(folder_ / "made.csv", options_),
              test::FailsWith("the protocol of the suite kernels, found guess, expected refit or shipped"));
  options_.protocol = "";
  options_.platforms = {{"Made-1", folder_ / "none.json"}};
  EXPECT_THAT(validate_kernels(folder_ / "made.csv", options_), test::FailsWith("none.json"));
  EXPECT_THAT(validate_kernels("/nowhere"), test::FailsWith("/nowhere"));
  options_.platforms = {{"Made-1", folder_ / "made-1.json"}};
  options_.published = folder_ / "no such file.csv";
  EXPECT_THAT(validate_kernels(folder_ / "made.csv", options_), test::FailsWith("no such file.csv"));
}

}  // namespace
}  // namespace stepcast::kernels_suite_test
