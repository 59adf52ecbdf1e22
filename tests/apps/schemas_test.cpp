// Every verb's --json follows its file in docs/schemas/.

#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stepcast/base/file.h"
#include "stepcast/base/json_value.h"
#include "stepcast/report/forecast_json.h"
#include "stepcast/sweep/sweep_keys.h"

#include "tests/support/command.h"
#include "tests/support/json_schema.h"
#include "tests/support/made_kernels.h"
#include "tests/support/paths.h"

namespace stepcast::test::schemas_test {
namespace {

using ::testing::IsEmpty;

std::string printed(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), stepcast_executable().string());
  const CommandResult result = run_command(arguments);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  return result.out;
}

std::vector<std::string> violations_of(const std::string& schema, const std::string& document) {
  const std::filesystem::path folder = source_dir() / "docs" / "schemas";
  const Result<std::string> text = read_file(folder / schema);
  if (!text) return {text.error().message()};
  return stepcast::fixtures::violations(*text, document, folder);
}

std::string example() { return (source_dir() / "examples" / "dlrm_4gpu").string(); }

TEST(Schemas, Replay) {
  const std::string document = printed({"replay", example(), "--json"});
  EXPECT_THAT(violations_of("replay.json", document), IsEmpty());
  const std::string spread = printed({"replay", example(), "--all-steps", "--scenarios", "20", "--json"});
  EXPECT_THAT(violations_of("replay.json", spread), IsEmpty());
}

TEST(Schemas, Predict) {
  const std::string document = printed({"predict", "--model", "gpt3-175b", "--platform", "dgx-a100", "--gpus",
                                        "64", "--tp", "8", "--pp", "8", "--gbs", "64", "--train-iterations",
                                        "10", "--failures", "default", "--explain", "--json"});
  EXPECT_THAT(violations_of("forecast.json", document), IsEmpty());
  const Result<Forecast> read = forecast_from_json(document);
  ASSERT_TRUE(read.ok()) << read.error().message();
  EXPECT_EQ(read->n_gpus, 64U);
  EXPECT_FALSE(read->explained.empty());
  ASSERT_TRUE(read->training && read->training->run);
  EXPECT_EQ(read->training->run->losses.size(), 4U);
  EXPECT_EQ(forecast_json(*read), document);
}

TEST(Schemas, Plan) {
  const std::string document =
      printed({"plan", "--model", "llama-3-8b", "--gpus", "16", "--gbs", "64", "--seq", "4096", "--json"});
  EXPECT_THAT(violations_of("plan.json", document), IsEmpty());
  const std::string script = (source_dir() / "tests" / "formats" / "scripts" / "bare_flags.sh").string();
  const std::string from = printed({"plan", "--from", script, "--gpus", "8", "--json"});
  EXPECT_THAT(violations_of("plan.json", from), IsEmpty());
  EXPECT_THAT(from, ::testing::HasSubstr(R"("nearby": [)"));
  const std::string training = printed({"plan",
                                        "--model",
                                        "llama-3-8b",
                                        "--gpus",
                                        "1,16",
                                        "--gbs",
                                        "64",
                                        "--seq",
                                        "4096",
                                        "--train-tokens",
                                        "1e11",
                                        "--within",
                                        "30d",
                                        "--gpu-hour-price",
                                        "2",
                                        "--failures",
                                        "default",
                                        "--recovery",
                                        "mode=async,spares=1",
                                        "--json"});
  EXPECT_THAT(violations_of("training_plan.json", training), IsEmpty());
}

TEST(Schemas, PredictTraces) {
  const std::string changed = printed({"predict", "--trace", example(), "--overlap", "none", "--batch",
                                       "4096", "--rank-platform", "2=t4", "--json"});
  EXPECT_THAT(violations_of("forecast.json", changed), IsEmpty());
  EXPECT_THAT(changed, ::testing::HasSubstr(R"("batch_per_rank": 4096)"));
  EXPECT_THAT(changed, ::testing::HasSubstr(R"("overlap": "none")"));
  EXPECT_THAT(changed, ::testing::HasSubstr(R"("rank_2": "t4")"));
  const std::string series = printed({"predict", "--trace", example(), "--batch", "4096,1024", "--json"});
  EXPECT_THAT(violations_of("batch_series.json", series), IsEmpty());
}

TEST(Schemas, PredictSeriesOfADescribedStep) {
  const std::string series =
      printed({"predict", "--model", "gpt2", "--platform", "dgx-a100", "--gpus", "8,16", "--tp", "2", "--gbs",
               "64", "--mbs", "1,2", "--layout", "as-said", "--json"});
  EXPECT_THAT(violations_of("scaling_series.json", series), IsEmpty());
  EXPECT_THAT(series, ::testing::HasSubstr(R"("layout": "tp2 dp8 mbs2")"));
}

TEST(Schemas, PredictSeriesOfARecommendationModel) {
  const std::string series = printed({"predict", "--model", "dlrm-mlperf-v1", "--platform", "dgx-a100",
                                      "--gpus", "8,16", "--batch", "2048,4096", "--what-if",
                                      "reuse=2x,rank_skew=1.3x", "--links-of", "8xa100-pcie-80gb", "--json"});
  EXPECT_THAT(violations_of("scaling_series.json", series), IsEmpty());
  EXPECT_THAT(series, ::testing::HasSubstr(R"("global_batch_samples": 65536)"));
}

TEST(Schemas, PredictPostTraining) {
  const std::string document =
      printed({"predict", "--model", "llama-3.1-8b", "--gpus", "16", "--rl", "grpo", "--prompts", "64",
               "--generations", "32", "--lengths", "mean=1019,max=4096", "--policy", "off:1", "--json"});
  EXPECT_THAT(violations_of("rl_forecast.json", document), IsEmpty());
  EXPECT_THAT(document, ::testing::HasSubstr(R"("policy": "off")"));
}

TEST(Schemas, Inspect) {
  const std::filesystem::path folder{example()};
  for (const std::string file : {"et_rank0.json.gz", "kineto_rank0.json.gz"}) {
    const std::string document = printed({"inspect", "--json", (folder / file).string()});
    EXPECT_THAT(violations_of("inspect.json", document), IsEmpty()) << file;
  }
  const std::string chakra = (source_dir() / "fuzz" / "corpus" / "chakra" / "step.et").string();
  EXPECT_THAT(violations_of("inspect.json", printed({"inspect", "--json", chakra})), IsEmpty());
  const std::string pipeline =
      (source_dir() / "fuzz" / "corpus" / "pipeline_timeline" / "two_ranks.json").string();
  EXPECT_THAT(violations_of("inspect.json", printed({"inspect", "--json", pipeline})), IsEmpty());
  const std::string indices = (source_dir() / "fuzz" / "corpus" / "table_indices" / "deflated.npz").string();
  EXPECT_THAT(violations_of("inspect.json", printed({"inspect", "--json", "--batch", "2", indices})),
              IsEmpty());
  const std::string tables = (source_dir() / "fuzz" / "corpus" / "embedding_tables" / "two").string();
  EXPECT_THAT(violations_of("inspect.json", printed({"inspect", "--json", tables})), IsEmpty());
  const std::string operations =
      printed({"inspect", "--operations", "--json", (folder / "et_rank0.json.gz").string()});
  EXPECT_THAT(violations_of("inspect.json", operations), IsEmpty());
}

TEST(Schemas, Logs) {
  const std::string log = (source_dir() / "tests" / "golden" / "logs" / "train.log").string();
  EXPECT_THAT(violations_of("inspect.json", printed({"inspect", log, "--json"})), IsEmpty());
  // Rates without times.
  const std::string rates = (source_dir() / "fuzz" / "corpus" / "training_log" / "titan_dump.log").string();
  EXPECT_THAT(violations_of("inspect.json", printed({"inspect", rates, "--json"})), IsEmpty());
  const std::string predicted = printed({"predict", "--from-log", log, "--platform", "dgx-h100", "--json"});
  EXPECT_THAT(violations_of("log_forecast.json", predicted), IsEmpty());
  EXPECT_THAT(violations_of("comparison.json", printed({"compare", log, log, "--json"})), IsEmpty());
}

TEST(Schemas, Shard) {
  const std::string document =
      printed({"shard", "--model", "dlrm-mlperf-v1", "--gpus", "8", "--sharders", "size,lookup", "--json"});
  EXPECT_THAT(violations_of("shard.json", document), IsEmpty());
}

TEST(Schemas, Platforms) {
  EXPECT_THAT(violations_of("platforms.json", printed({"platforms", "--json"})), IsEmpty());
}

TEST(Schemas, Models) { EXPECT_THAT(violations_of("models.json", printed({"models", "--json"})), IsEmpty()); }

TEST(Schemas, Validate) {
  EXPECT_THAT(violations_of("validate.json", printed({"validate", "replay", "--data", example(), "--json"})),
              IsEmpty());
}

class CalibrateSchemas : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path{::testing::TempDir()} / ("schemas_" + std::to_string(::getpid()));
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  [[nodiscard]] std::string file(const std::string& name) const { return (folder_ / name).string(); }
  std::filesystem::path folder_;
};

// `./dev docs` writes them anew.
TEST(CalibrationAnswers, AreDescribedByTheirSchemaFiles) {
  const std::string lab = (stepcast_executable().parent_path() / "stepcast-lab").string();
  for (const std::string kind : {"collectives", "iterations", "kernels", "overheads"}) {
    const std::string name = "calibrate_" + kind + ".json";
    const Result<std::string> text = read_file(source_dir() / "docs" / "schemas" / name);
    ASSERT_TRUE(text.ok()) << text.error().message();
    EXPECT_EQ(*text, run_command({lab, "reference", name}).out) << name;
  }
}

TEST_F(CalibrateSchemas, Kernels) {
  std::ofstream{folder_ / "made-1.json"} << kMadePlatform;
  std::ofstream{folder_ / "made.csv"} << made_kernels_csv();
  const std::string document = printed({"calibrate", "kernels", file("made.csv"), "--platform",
                                        file("made-1.json"), "-o", file("out.json"), "--json"});
  EXPECT_THAT(violations_of("calibrate_kernels.json", document), IsEmpty());
}

// Four sizes of an all-reduce of two GPUs.
TEST_F(CalibrateSchemas, Collectives) {
  const std::string log = (source_dir() / "fuzz" / "corpus" / "nccl_tests" / "new_columns.txt").string();
  const std::string document =
      printed({"calibrate", "collectives", log, "--platform", "dgx-a100", "--collective", "all_reduce",
               "--ranks", "2", "--gpus-per-node", "8", "--min-sizes", "3", "-o", file("out.json"), "--json"});
  EXPECT_THAT(violations_of("calibrate_collectives.json", document), IsEmpty());
}

TEST_F(CalibrateSchemas, Overheads) {
  const std::string document = printed({"calibrate", "overheads", example(), "--platform", "v100-sxm2-32gb",
                                        "-o", file("out.json"), "--json"});
  EXPECT_THAT(violations_of("calibrate_overheads.json", document), IsEmpty());
}

// docs/schemas/input/: what editors complete by.
TEST(Schemas, PlatformFilesThatShipFollowTheirs) {
  std::size_t n = 0;
  for (const char* folder : {"platforms", "examples/platforms"}) {
    for (const auto& entry : std::filesystem::directory_iterator(source_dir() / folder)) {
      if (entry.path().extension() != ".json") continue;
      const Result<std::string> text = read_file(entry.path());
      ASSERT_TRUE(text.ok());
      EXPECT_THAT(violations_of("input/platform.json", *text), IsEmpty()) << entry.path();
      ++n;
    }
  }
  EXPECT_GT(n, 50U);
  EXPECT_FALSE(
      violations_of("input/platform.json", R"({"stepcast_platform": 1, "name": "x", "nodes": {}})").empty());
}

TEST(Schemas, SweepsAndModelsFollowTheirs) {
  const auto keys_of = [](const char* schema) {
    const Result<std::string> text = read_file(source_dir() / "docs" / "schemas" / "input" / schema);
    std::set<std::string> keys;
    if (!text) return keys;
    const Result<JsonValue> document = parse_json(*text, schema);
    if (!document) return keys;
    for (const auto& [key, value] : document->find("properties")->members()) keys.insert(std::string{key});
    return keys;
  };
  std::set<std::string> spelled;
  for (const std::string& key : keys_of("sweep.json")) spelled.insert(sweep_key(key));
  for (const SweepMode mode : {SweepMode::predict, SweepMode::plan})
    for (const std::string& key : own_sweep_keys(mode)) EXPECT_TRUE(spelled.contains(sweep_key(key))) << key;
  for (const std::string& key : spelled)
    EXPECT_TRUE(key == "mode" || is_sweep_key(key, SweepMode::predict) || is_sweep_key(key, SweepMode::plan))
        << key;
  EXPECT_TRUE(keys_of("model.json").contains("num_key_value_heads"));
  for (const auto& entry :
       std::filesystem::directory_iterator(source_dir() / "tests" / "formats" / "configs")) {
    if (entry.path().extension() != ".json") continue;
    const Result<std::string> text = read_file(entry.path());
    ASSERT_TRUE(text.ok());
    EXPECT_THAT(violations_of("input/model.json", *text), IsEmpty()) << entry.path();
  }
}

}  // namespace
}  // namespace stepcast::test::schemas_test
