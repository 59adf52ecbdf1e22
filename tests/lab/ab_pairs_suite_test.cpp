#include <algorithm>
#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lab/suites.h"
#include "tests/support/data.h"
#include "tests/support/temporary_folder.h"

namespace stepcast::ab_pairs_suite_test {
namespace {

const std::string kHeader =
    "source,path,model,gpu,n_gpus,common_flags,setting_A,setting_B,kind,time_ratio_B_over_A,memory_A,memory_"
    "B,"
    "notes\n";
const std::string kLlama =
    "--tensor-model-parallel-size 2 --micro-batch-size 1 --global-batch-size 16 --seq-length 4096 --bf16";

double extra(const TestScore& test, const std::string& name) {
  const auto found = std::find_if(test.extras.begin(), test.extras.end(),
                                  [&](const ExtraMetric& e) { return e.name == name; });
  return found == test.extras.end() ? -1 : found->value;
}

TEST(AbPairsSuite, ScoresRatiosBesideNoChangeAndNamesWhatIsNotDescribed) {
  const test::TemporaryFolder folder;
  std::ofstream{folder.path() / "ab_pairs.csv"}
      << kHeader << "x,p,llama-3-8b,H100,8," << kLlama
      << ",,--recompute-granularity full --recompute-method uniform --recompute-num-layers "
         "1,recompute,1.3,60,30,\n"
      << "x,p,llama-3-8b,H100,8," << kLlama
      << ",,--recompute-granularity full --recompute-method uniform --recompute-num-layers "
         "1,recompute,0.9,,,\n"
      << "x,p,llama-3-8b,H100,8," << kLlama << ",,a setting in other words,recompute,1.3,,,\n"
      << "x,p,llama-3-8b,H100,," << kLlama << ",,--fp8-format hybrid,recompute,1.3,,,\n"
      << "x,t,llama-2-7b,MI300X,8,--pipeline-model-parallel-size 8,1f1b,\"interleaved 1f1b, 2 "
         "chunks\",pipeline "
         "schedule,0.92,,,\n"
      << "x,t,llama-2-7b,MI300X,8,--pipeline-model-parallel-size 8,1f1b,zero bubble,pipeline "
         "schedule,0.9,,,\n";
  const Result<SuiteResult> result = validate_ab_pairs(folder.path());
  ASSERT_TRUE(result.ok()) << result.error().message();
  ASSERT_EQ(result->tests.size(), 3U);
  const TestScore& ratio = result->tests[0];
  ASSERT_EQ(ratio.sets.size(), 2U);
  EXPECT_EQ(ratio.sets[0].rows.size(), 2U);
  EXPECT_GT(ratio.sets[0].rows[0].predicted, 1.1);
  EXPECT_EQ(ratio.sets[0].rows[0].predicted, ratio.sets[0].rows[1].predicted);
  // Recomputation is not faster; zero bubble is.
  EXPECT_EQ(extra(ratio, "right_n"), 2);
  EXPECT_NEAR(extra(ratio, "right_percent"), 200.0 / 3, 1e-9);
  EXPECT_EQ(result->tests[1].sets[0].rows[0].predicted, 1);
  EXPECT_EQ(result->tests[2].pooled.n, 1U);
  ASSERT_EQ(result->skipped.size(), 3U);
  EXPECT_EQ(result->skipped[0].why, "`a setting in other words` is not known");
  EXPECT_EQ(result->skipped[1].why, "the number of GPUs is not stated");
  EXPECT_THAT(result->skipped[2].why, ::testing::EndsWith("micro-batches of its table"));
}

TEST(AbPairsSuite, OrdersPublishedPairsBetterThanNoChange) {
  SKIP_WITHOUT_DATA();
  const Result<SuiteResult> result = validate_ab_pairs(*test::measured_data() / "field");
  ASSERT_TRUE(result.ok()) << result.error().message();
  EXPECT_GE(extra(result->tests[0], "right_percent"), 85);
  EXPECT_LT(result->tests[0].pooled.median_ape, result->tests[1].pooled.median_ape / 2);
}

}  // namespace
}  // namespace stepcast::ab_pairs_suite_test
