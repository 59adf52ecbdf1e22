// The laboratory from the command line: verbs of it that `stepcast` hands on, and what it says where there is none.

#include <filesystem>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stepcast/report/forecast_json.h"

#include "tests/support/command.h"
#include "tests/support/paths.h"
#include "tests/support/temporary_folder.h"

namespace stepcast::test::laboratory_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string laboratory() { return stepcast_executable().replace_filename("stepcast-lab").string(); }
std::string example() { return (source_dir() / "examples" / "dlrm_4gpu").string(); }

Forecast forecast_of(std::vector<std::string> words) {
  words.insert(words.begin(), {laboratory(), "predict", "--json"});
  const CommandResult result = run_command(words);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  Result<Forecast> forecast = forecast_from_json(result.out);
  EXPECT_TRUE(forecast.ok()) << forecast.error().message();
  return forecast.ok() ? std::move(*forecast) : Forecast{};
}

TEST(Laboratory, RunsVerbsOfItForTheTool) {
  const CommandResult by_tool = run_command({stepcast_executable().string(), "reference", "presets"});
  const CommandResult itself = run_command({laboratory(), "reference", "presets"});
  EXPECT_EQ(by_tool.exit_code, 0) << by_tool.err;
  EXPECT_EQ(by_tool.out, itself.out);
  const CommandResult help = run_command({stepcast_executable().string(), "help", "validate"});
  EXPECT_THAT(help.out, HasSubstr("--protocol"));
  // What is wrong is said in the words that were typed.
  EXPECT_THAT(run_command({stepcast_executable().string(), "validate"}).err, HasSubstr("stepcast: error: "));
  EXPECT_THAT(run_command({laboratory(), "validate"}).err, HasSubstr("stepcast-lab: error: "));
}

TEST(Laboratory, IsNamedWhereItIsMissing) {
  const TemporaryFolder folder;
  const std::filesystem::path alone = folder.path() / "stepcast";
  std::filesystem::copy_file(stepcast_executable(), alone);
  for (const char* verb : {"validate", "reference"}) {
    const CommandResult result = run_command({alone.string(), verb, "all", "--data", "."});
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_THAT(result.err, AllOf(HasSubstr(verb), HasSubstr("stepcast-lab"), HasSubstr("./dev lab")));
  }
}

TEST(Laboratory, ForecastsByThePublishedAlgorithm) {
  const Forecast forecast = forecast_of({"--trace", example(), "--published-algorithm"});
  ASSERT_FALSE(forecast.layout.empty());
  EXPECT_EQ(forecast.layout.front().name, "published_algorithm");
  EXPECT_EQ(forecast.n_gpus, 4U);
  EXPECT_GT(forecast.step_time_ms, 0);
  EXPECT_EQ(forecast.step_time_p10_ms, forecast.step_time_p90_ms);  // it gives no band
  EXPECT_THAT(forecast.notes, ::testing::Contains(HasSubstr("recorded step")));
}

TEST(Laboratory, ComposesADescribedStepAsPublished) {
  const Forecast forecast = forecast_of({"--model", "gpt3-175b", "--platform", "dgx-a100", "--gpus", "64",
                                         "--tp", "8", "--pp", "8", "--gbs", "64", "--published"});
  ASSERT_TRUE(forecast.published);
  EXPECT_NEAR(forecast.published->step_time_ms / forecast.step_time_ms, 1, 0.5);
}

TEST(Laboratory, RefusesWhatNoPublishedMethodHas) {
  const auto refused = [](std::vector<std::string> words) {
    words.insert(words.begin(), {laboratory(), "predict"});
    const CommandResult result = run_command(words);
    EXPECT_EQ(result.exit_code, 2) << result.out;
    return result.err;
  };
  EXPECT_THAT(refused({"--trace", example()}), HasSubstr("--published-algorithm"));
  EXPECT_THAT(refused({"--published-algorithm"}), HasSubstr("--trace"));
  EXPECT_THAT(refused({"--trace", example(), "--published"}), HasSubstr("--published-algorithm"));
  EXPECT_THAT(refused({"--model", "gpt3-175b", "--gpus", "64", "--published"}), HasSubstr("--tp"));
}

}  // namespace
}  // namespace stepcast::test::laboratory_test
