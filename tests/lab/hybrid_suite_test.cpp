#include <filesystem>
#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lab/suites.h"
#include "tests/support/data.h"
#include "tests/support/temporary_folder.h"

namespace stepcast::hybrid_suite_test {
namespace {

TEST(HybridSuite, NamesRowsWithoutAConfig) {
  const test::TemporaryFolder folder;
  std::filesystem::create_directory(folder.path() / "model_configs");
  std::ofstream{folder.path() / "hybrid_steps.csv"}
      << "release,model,variant,gpu,n_gpus,precision,global_batch_sequences,micro_batch_sequences,seq_len_"
         "tokens,"
         "fsdp,tp,pp,cp,vp,ep,tokens_per_s_per_gpu,step_time_ms\n"
      << "26.06,No_Model,,H100,16,FP8,1024,1,8192,0,1,1,1,1,8,14719,35619\n";
  const Result<SuiteResult> result = validate_hybrid(folder.path());
  ASSERT_TRUE(result.ok()) << result.error().message();
  EXPECT_TRUE(result->tests.empty());
  ASSERT_EQ(result->skipped.size(), 1U);
  EXPECT_THAT(result->skipped[0].why, ::testing::HasSubstr("no config.json of No-Model"));
}

TEST(HybridSuite, PublishedStepsComeCloserThanByTheUtilisationOfTheOtherModel) {
  SKIP_WITHOUT_DATA();
  if (!std::filesystem::exists(*test::measured_data() / "field" / "hybrid_steps.csv")) GTEST_SKIP();
  const Result<SuiteResult> result = validate_hybrid(*test::measured_data() / "field");
  ASSERT_TRUE(result.ok()) << result.error().message();
  ASSERT_EQ(result->tests.size(), 3U);
  const TestScore& ours = result->tests[0];
  EXPECT_EQ(ours.test, "hybrid_steps");
  EXPECT_LT(ours.pooled.max_ape, 20);
  EXPECT_LT(ours.pooled.mape, result->tests[1].pooled.mape);
  // They ran.
  for (const SetScore& set : ours.sets) EXPECT_EQ(set.extras[0].value, 0) << set.set;
}

}  // namespace
}  // namespace stepcast::hybrid_suite_test
