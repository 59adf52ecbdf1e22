#include "lab/megatron_lines_suite.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <span>
#include <string>
#include <string_view>
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

// As above but small enough for the host to be slower than the GPU; attention of one kind.
const std::string kSmallLine =
    "--num-layers 12 --hidden-size 512 --num-attention-heads 8 --seq-length 1024 --max-position-embeddings "
    "1024 "
    "--micro-batch-size 4 --global-batch-size 64 --vocab-size 50304 --bf16 --attention-backend unfused ";

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
      << "\nt5,d,H100,8,1," << kLine << "--img-h 2\ngpt,e,H100,8,1," << kLine << "--num-layers x\n";
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
  EXPECT_THAT(result->skipped[0].why, HasSubstr("refused: --img-h"));
  EXPECT_THAT(result->skipped[1].why, HasSubstr("failed: --num-layers"));
  EXPECT_THAT(result->skipped[2].what, HasSubstr("--brand-new"));
}

// Lines that differ in one flag: whether it makes the step longer.
TEST(MegatronLinesSuite, FlagsActInTheRightDirection) {
  struct Effect {
    std::string with, without;
    bool longer;
  };
  // Of two ranks: parts of eight would wait for their host, whatever overlaps.
  const std::string tp = "--tensor-model-parallel-size 2 --sequence-parallel ";
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
  const Effect kEffectsOnHosts[] = {
      {"--deterministic-mode", "", true},
      {"--transformer-impl local", "--transformer-impl transformer_engine", false},
      {"--enable-cuda-graph", "", false},
      {"--log-num-zeros-in-grad", "", true}};
  const auto expect_effects = [](const std::string& line, std::span<const Effect> effects) {
    for (const Effect& effect : effects) {
      const double with = step_ms(line + effect.with), without = step_ms(line + effect.without);
      EXPECT_TRUE(effect.longer ? with > without : with < without)
          << effect.with << ": " << with << " and " << without;
    }
  };
  expect_effects(kLine, kEffects);
  expect_effects(kSmallLine, kEffectsOnHosts);
}

// FNV-1a of "a" is even, of "b" and "d" odd; large models are left out.
TEST(MegatronLinesSuite, ScoresTheHalfOfSmallLinesThatHostsAreNotFittedTo) {
  const test::TemporaryFolder folder;
  std::ofstream{folder.path() / "megatron_lines.csv"}
      << "suite,case,gpu,n_gpus,step_median_ms,flags\n"
      << "gpt,a,H100,8,500," << kSmallLine << "\ngpt,b,H100,8,600," << kSmallLine << "\nmoe,b,A100,8,1,"
      << kSmallLine << "\ngpt,d,H100,8,700," << kSmallLine << "\ngpt,f,H100,8,700," << kLine << "\n";
  const Result<SuiteResult> result = validate_megatron_lines(folder.path());
  ASSERT_TRUE(result.ok()) << result.error().message();
  const auto of = [&](std::string_view name) -> const TestScore& {
    return *std::ranges::find(result->tests, name, &TestScore::test);
  };
  const TestScore& steps = of("host_bound");
  ASSERT_EQ(steps.sets.size(), 2U);
  EXPECT_EQ(steps.sets[0].set, "dense GPT H100");
  EXPECT_EQ(steps.sets[0].group, "dense GPT");
  EXPECT_EQ(steps.sets[0].n_fit, 1U);
  EXPECT_EQ(steps.sets[0].rows.size(), 2U);
  EXPECT_EQ(steps.sets[1].set, "experts A100");
  EXPECT_EQ(of("host_bound_median_of_others").sets.at(0).rows.at(1).predicted, 600);
}

// Settings that act and have no price leave the time as it is and make the band wider.
TEST(MegatronLinesSuite, SettingsWithoutAPriceWidenTheBand) {
  PredictRequest request;
  request.job.n_gpus = 8;
  request.job.command_line = kLine;
  const Result<Forecast> plain = Session{}.predict(request);
  *request.job.command_line += "--fp32-residual-connection";
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
