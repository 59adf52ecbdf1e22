#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lab/suites.h"
#include "tests/support/data.h"
#include "tests/support/temporary_folder.h"

namespace stepcast::tpu_suite_test {
namespace {

const std::string kHeader =
    "model,tpu,n_chips,n_devices,slices,seq_len_tokens,global_batch_tokens,per_device_batch,ici_parallelism,"
    "dcn_parallelism,remat,step_s,moe,note\n";

TEST(TpuSuite, ScoresStepsBesideTheUtilisationOfOthersAndNamesWhatIsNotDescribed) {
  const test::TemporaryFolder folder;
  std::ofstream{folder.path() / "tpu_steps.csv"}
      << kHeader
      << "llama3.1-8b,v6e,16,16,1,8192,393216,3,ici_fsdp_parallelism=-1,,custom: query_proj=offload "
         "key_proj=offload value_proj=offload,3,0,\n"
      << "llama3.1-8b,v6e,16,16,1,8192,393216,3,ici_fsdp_parallelism=-1,,full,4,0,\n"
      << "llama3.1-8b,TPU7x,64,128,1,8192,3145728,3,ici_fsdp_parallelism=-1,,full,2,0,\n"
      << "mixtral-8x7b,v6e,256,256,,4096,12582912,12,ici_fsdp_parallelism=-1,,full,13,1,\n"
      << "llama3.1-8b,v5p,16,16,1,,393216,,,,,3,0,\n"
      << "wan2.1-14b,TPU7x,64,128,1,75600,2419200,0.25,ici_fsdp_parallelism=4,,full,24,0,diffusion model\n"
      << "no-such-model,v6e,16,16,1,8192,393216,3,ici_fsdp_parallelism=-1,,full,4,0,\n";
  const Result<SuiteResult> result = validate_tpu(folder.path());
  ASSERT_TRUE(result.ok()) << result.error().message();
  ASSERT_EQ(result->tests.size(), 4U);
  const SetScore& dense = result->tests[0].sets[0];
  EXPECT_EQ(dense.set, "v6e");
  ASSERT_EQ(dense.rows.size(), 2U);
  // What is kept is not computed again.
  EXPECT_LT(dense.rows[0].predicted, dense.rows[1].predicted);
  // What was fitted to the dense row of the other chip, and to none of its own.
  EXPECT_EQ(dense.n_fit, 1U);
  EXPECT_EQ(result->tests[1].sets[0].rows[0].measured, 13);
  // As many FLOPs in 4 s as in 3: the second row at the utilisation of the first and of the third.
  const SetScore& trivial = result->tests[2].sets[0];
  ASSERT_EQ(trivial.rows.size(), 2U);
  EXPECT_EQ(trivial.rows[0].measured, 3);
  EXPECT_NE(trivial.rows[0].predicted, trivial.rows[1].predicted);
  ASSERT_EQ(result->skipped.size(), 3U);
  EXPECT_EQ(result->skipped[0].why, "neither layout nor recomputation is stated");
  EXPECT_EQ(result->skipped[1].why, "a diffusion model");
  EXPECT_THAT(result->skipped[2].why, ::testing::HasSubstr("no-such-model"));
}

TEST(TpuSuite, PublishedStepsComeCloserThanByTheUtilisationOfOthers) {
  SKIP_WITHOUT_DATA();
  const Result<SuiteResult> result = validate_tpu(*test::measured_data() / "field");
  ASSERT_TRUE(result.ok()) << result.error().message();
  ASSERT_GE(result->tests.size(), 3U);
  EXPECT_EQ(result->tests[0].test, "dense");
  EXPECT_LT(result->tests[0].pooled.median_ape, 8);
  EXPECT_LT(result->tests[1].pooled.median_ape, 15);
  // platforms/kernels/tpu.json ships what all rows say together.
  EXPECT_NEAR(result->tests[0].sets[0].extras[1].value, 1.13, 0.02);
}

}  // namespace
}  // namespace stepcast::tpu_suite_test
