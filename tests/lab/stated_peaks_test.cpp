#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stepcast/api/stepcast.h"

#include "lab/run_scores.h"
#include "tests/support/data.h"
#include "tests/support/temporary_folder.h"

namespace stepcast::stated_peaks_test {
namespace {

const std::string kLine =
    "--num-layers 12 --hidden-size 512 --num-attention-heads 8 --seq-length 1024 --max-position-embeddings "
    "1024 "
    "--micro-batch-size 4 --global-batch-size 32 --vocab-size 50304 --bf16 --pipeline-model-parallel-size 2";

// Of two stages the last has the logits; a row without a peak, and a pair whose setting is in words, are left out.
TEST(StatedPeaks, AreThoseOfTheLastRankAndOfPairsInFlags) {
  const test::TemporaryFolder folder;
  std::ofstream{folder.path() / "megatron_lines.csv"}
      << "suite,case,gpu,n_gpus,peak_allocated_GiB,flags\ngpt,a,H100,8,2.5," << kLine << "\ngpt,b,H100,8,,"
      << kLine << "\n";
  std::ofstream{folder.path() / "ab_pairs.csv"}
      << "model,n_gpus,common_flags,setting_A,setting_B,memory_A,memory_B\n"
      << "llama3-70b,32,--tensor-model-parallel-size 4 --pipeline-model-parallel-size 4 --micro-batch-size 1 "
         "--global-batch-size 32 --seq-length 4096 --bf16 --sequence-parallel,,in words,58.8,60\n"
      << "other,32,--seq-length 4096,,,1,2\n";
  const Result<std::vector<SetScore>> sets = stated_peaks(folder.path());
  ASSERT_TRUE(sets.ok()) << sets.error().message();
  ASSERT_EQ(sets->size(), 2U);
  ASSERT_EQ((*sets)[0].rows.size(), 1U);
  EXPECT_EQ((*sets)[0].rows[0].measured, 2.5);
  PredictRequest request;
  request.job.command_line = kLine;
  request.job.n_gpus = 8;
  const Result<Forecast> forecast = Session{}.predict(request);
  ASSERT_TRUE(forecast.ok() && forecast->memory);
  const ForecastStageMemory& last = forecast->memory->stages.back();
  EXPECT_DOUBLE_EQ((*sets)[0].rows[0].predicted, last.weights_GiB + last.gradients_GiB + last.optimizer_GiB +
                                                     last.activations_GiB + last.working_GiB);
  ASSERT_EQ((*sets)[1].rows.size(), 1U);
  EXPECT_GT((*sets)[1].rows[0].predicted, 20);
}

TEST(StatedPeaks, ComeOutCloseInTheMedian) {
  SKIP_WITHOUT_DATA();
  const auto folder = *test::measured_data() / "field";
  if (!std::filesystem::exists(folder / "megatron_lines.csv")) GTEST_SKIP() << "no lines in " << folder;
  const Result<std::vector<SetScore>> sets = stated_peaks(folder);
  ASSERT_TRUE(sets.ok()) << sets.error().message();
  for (const SetScore& set : *sets) EXPECT_LT(score(set.rows).median_ape, 10) << set.set;
}

}  // namespace
}  // namespace stepcast::stated_peaks_test
