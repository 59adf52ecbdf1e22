#include "lab/megatron_lines_suite.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stepcast/api/stepcast.h"
#include "stepcast/base/csv_rows.h"
#include "stepcast/base/file.h"

#include "tests/support/data.h"
#include "tests/support/temporary_folder.h"

namespace stepcast::megatron_lines_suite_test {
namespace {

using ::testing::HasSubstr;

const std::string kLine =
    "--num-layers 24 --hidden-size 4096 --num-attention-heads 32 --seq-length 2048 --max-position-embeddings "
    "2048 "
    "--micro-batch-size 2 --global-batch-size 64 --vocab-size 50304 --bf16 ";

double step_ms(const std::string& line) {
  PredictRequest request;
  request.job.command_line = line;
  request.job.n_gpus = 8;
  const Result<Forecast> forecast = Session{}.predict(request);
  EXPECT_TRUE(forecast.ok()) << line << ": " << forecast.error().message();
  return forecast.ok() ? forecast->step_time_ms : 0;
}

double extra(const SetScore& set, const std::string& name) {
  const auto found = std::find_if(set.extras.begin(), set.extras.end(),
                                  [&](const ExtraMetric& e) { return e.name == name; });
  return found == set.extras.end() ? -1 : found->value;
}

TEST(MegatronLinesSuite, CountsWhatIsForecastRefusedAndFails) {
  const test::TemporaryFolder folder;
  std::ofstream{folder.path() / "megatron_lines.csv"}
      << "suite,case,gpu,n_gpus,step_median_ms,flags\n"
      << "gpt,a,H100,8,500," << kLine << "\ngpt,b,A100,8,900," << kLine << "\ngpt,c,H100,8,700," << kLine
      << "\nt5,d,H100,8,1," << kLine << "--decoder-num-layers 2\ngpt,e,H100,8,1," << kLine
      << "--num-layers x\n";
  std::ofstream{folder.path() / "megatron_arguments.csv"} << "flags\n--num-layers\n--rope-type --brand-new\n";
  const Result<SuiteResult> result = validate_megatron_lines(folder.path());
  ASSERT_TRUE(result.ok()) << result.error().message();
  ASSERT_EQ(result->tests.size(), 4U);
  const SetScore& lines = result->tests[0].sets.at(0);
  EXPECT_EQ(extra(lines, "forecast_n"), 3);
  EXPECT_EQ(extra(lines, "refused_n"), 1);
  EXPECT_EQ(extra(lines, "failed_n"), 1);
  EXPECT_EQ(extra(lines, "right_percent"), 80);
  EXPECT_EQ(result->tests[1].test, "step_time");
  EXPECT_EQ(result->tests[1].pooled.n, 3U);
  EXPECT_EQ(result->tests[2].sets.at(1).rows.at(0).predicted, 700) << "the other line of H100";
  EXPECT_EQ(extra(result->tests[3].sets.at(0), "unknown_n"), 1);
  ASSERT_EQ(result->skipped.size(), 3U);
  EXPECT_THAT(result->skipped[0].why, HasSubstr("refused: --decoder-num-layers"));
  EXPECT_THAT(result->skipped[1].why, HasSubstr("failed: --num-layers"));
  EXPECT_THAT(result->skipped[2].what, HasSubstr("--brand-new"));
}

// Lines that differ in one flag: whether it makes the step longer.
TEST(MegatronLinesSuite, FlagsActInTheRightDirection) {
  struct Effect {
    std::string with, without;
    bool longer;
  };
  const std::string tp = "--tensor-model-parallel-size 8 --sequence-parallel ";
  const std::string pp = "--pipeline-model-parallel-size 4 ";
  const Effect kEffects[] = {
      {"--recompute-granularity full --recompute-method uniform --recompute-num-layers 1", "", true},
      {"--fp8-format hybrid", "", false},
      {"--attention-backend unfused", "", true},
      {tp, "", true},
      {tp + "--tp-comm-overlap", tp, false},
      {"--use-distributed-optimizer --overlap-grad-reduce", "--use-distributed-optimizer", false},
      {"--num-experts 8 --moe-router-topk 2 --expert-model-parallel-size 8", "", true},
      {pp + "--num-layers-per-virtual-pipeline-stage 2", pp, false},
      {"--optimizer-cpu-offload", "", true},
      {"--clip-grad 0", "", false},
      {"--log-params-norm", "", true},
      {"--log-num-zeros-in-grad", "", true}};
  for (const Effect& effect : kEffects) {
    const double with = step_ms(kLine + effect.with), without = step_ms(kLine + effect.without);
    EXPECT_TRUE(effect.longer ? with > without : with < without)
        << effect.with << ": " << with << " and " << without;
  }
}

// Settings that act and have no price leave the time as it is and make the band wider.
TEST(MegatronLinesSuite, SettingsWithoutAPriceWidenTheBand) {
  PredictRequest request;
  request.job.n_gpus = 8;
  request.job.command_line = kLine;
  const Result<Forecast> plain = Session{}.predict(request);
  *request.job.command_line += "--deterministic-mode";
  const Result<Forecast> noted = Session{}.predict(request);
  ASSERT_TRUE(plain.ok() && noted.ok());
  EXPECT_EQ(plain->step_time_ms, noted->step_time_ms);
  EXPECT_LT(noted->step_time_p10_ms, plain->step_time_p10_ms);
  EXPECT_GT(noted->step_time_p90_ms, plain->step_time_p90_ms);
}

// What is guessed of a tokenizer against what the line states beside it, of lines that state both and train.
TEST(MegatronLinesSuite, GuessedVocabulariesComeCloseToStatedOnes) {
  const std::pair<std::string, std::string> kBoth[] = {
      {"--tokenizer-type HuggingFaceTokenizer --tokenizer-model Qwen/Qwen3-8B-Base", "151936"},
      {"--tokenizer-type Llama2Tokenizer --tokenizer-model /data/tokenizer.model", "32000"},
      {"--tokenizer-type HuggingFaceTokenizer --tokenizer-model meta-llama/Meta-Llama-3-70B", "128256"},
      {"--tokenizer-type TikTokenizer --tokenizer-model /data/words.500000.128k.vocab.json", "131072"},
      {"--tokenizer-type GPTSentencePieceTokenizer --tokenizer-model /data/nemotron_2_256k.model", "256000"},
      {"--vocab-file vocab.json --merge-file merges.txt", "50257"}};
  std::string line = kLine;
  line.erase(line.find("--vocab-size"), std::string{"--vocab-size 50304 "}.size());
  for (const auto& [tokenizer, words] : kBoth) {
    const double guessed = step_ms(line + tokenizer),
                 stated = step_ms(line + tokenizer + " --vocab-size " + words);
    EXPECT_LT(std::abs(guessed / stated - 1), 0.02) << tokenizer;
  }
}

TEST(MegatronLinesSuite, ReadsTheLinesOfMegatronItself) {
  SKIP_WITHOUT_DATA();
  const auto folder = *test::measured_data() / "field";
  if (!std::filesystem::exists(folder / "megatron_lines.csv")) GTEST_SKIP() << "no lines in " << folder;
  const Result<SuiteResult> result = validate_megatron_lines(folder);
  ASSERT_TRUE(result.ok()) << result.error().message();
  for (const SetScore& set : result->tests.front().sets) {
    EXPECT_EQ(extra(set, "failed_n"), 0) << set.set;
    EXPECT_GT(extra(set, "forecast_n"), 20) << set.set;
  }
}

}  // namespace
}  // namespace stepcast::megatron_lines_suite_test
