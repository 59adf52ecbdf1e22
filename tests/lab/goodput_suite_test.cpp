#include <fstream>

#include <gtest/gtest.h>

#include "lab/suite.h"
#include "lab/suites.h"
#include "tests/support/data.h"
#include "tests/support/temporary_folder.h"

namespace stepcast::goodput_suite_test {
namespace {

TEST(GoodputSuite, PrintsSharesBesideAConstantAndNamesWhatIsNotStated) {
  const test::TemporaryFolder folder;
  std::ofstream{folder.path() / "goodput.csv"}
      << "model,n_gpus,mean_time_to_interruption_h,effective_training_percent,comparison_percent,comparison,"
         "checkpoint_size_TB\n"
         "a,1024,,97,,,\nb,,5,90,70,manual restarts,\nc,,,95,,,\nd,8,,,,,\n";
  const Result<SuiteResult> result = validate_goodput(folder.path());
  ASSERT_TRUE(result.ok()) << result.error().message();
  ASSERT_EQ(result->tests.size(), 5U);
  EXPECT_EQ(result->tests[0].pooled.n, 200U);
  EXPECT_LT(result->tests[0].pooled.max_ape, 1);
  const auto& machine = result->tests[2].sets[0].rows;
  const auto& people = result->tests[3].sets[0].rows;
  const auto& constant = result->tests[4].sets[0].rows;
  ASSERT_EQ(machine.size(), 2U);
  EXPECT_EQ(people[1].measured, 70);
  EXPECT_LT(people[1].predicted, machine[1].predicted);
  EXPECT_EQ(constant[0].predicted, 90);
  EXPECT_EQ(result->skipped.size(), 2U);
}

// The folder of all measured data does as well as the one below it.
TEST(GoodputSuite, LooksBelowTheFolderOfAllData) {
  const test::TemporaryFolder folder;
  const Suite& suite = *find_suite("goodput");
  const Result<SuiteResult> without = run_suite(suite, folder.path(), {});
  ASSERT_FALSE(without.ok());
  std::filesystem::create_directory(folder.path() / "field");
  std::ofstream{folder.path() / "field/goodput.csv"}
      << "model,n_gpus,mean_time_to_interruption_h,effective_training_percent,comparison_percent,comparison,"
         "checkpoint_size_TB\na,1024,,97,,,\n";
  const Result<SuiteResult> result = run_suite(suite, folder.path(), {});
  ASSERT_TRUE(result.ok()) << result.error().message();
  EXPECT_EQ(result->tests[2].sets[0].rows.size(), 1U);
}

TEST(GoodputSuite, FindsTheSizeOfThePublishedCheckpoint) {
  SKIP_WITHOUT_DATA();
  const Result<SuiteResult> result = validate_goodput(*test::measured_data() / "field");
  ASSERT_TRUE(result.ok()) << result.error().message();
  ASSERT_EQ(result->tests.size(), 10U);
  EXPECT_LT(result->tests[5].pooled.max_ape, 10);
  EXPECT_EQ(result->tests[1].sets[0].rows.size(), 6U);
  const TestScore &tails = result->tests[6], &constant = result->tests[9];
  EXPECT_EQ(tails.test, "tails");
  EXPECT_EQ(constant.test, "constant_tails");
  EXPECT_LT(tails.pooled.mape, constant.pooled.mape);
}

}  // namespace
}  // namespace stepcast::goodput_suite_test
