#include <filesystem>
#include <map>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stepcast/base/csv_rows.h"
#include "stepcast/base/shipped_table.h"

#include "lab/suites.h"
#include "tests/support/data.h"

namespace stepcast::iterations_suite_test {
namespace {

using ::testing::IsEmpty;

// The measured sets, held a little above what docs/accuracy.md shows; a change that loses accuracy fails
// here.
TEST(IterationsSuite, MeasuredStepsStayAsCloseAsTheyAre) {
  SKIP_WITHOUT_DATA();
  const auto result =
      validate_iterations(*test::measured_data() / "iterations" / "llm_runs.csv", {.protocol = "shipped"});
  ASSERT_TRUE(result.ok()) << result.error().message();
  const TestScore& steps = result->tests.at(0);
  const auto of = [&](const std::string& name) -> const Metrics& {
    for (const SetScore& set : steps.sets) {
      if (set.set == name) return set.metrics;
    }
    ADD_FAILURE() << "no set " << name;
    return steps.overall;
  };
  EXPECT_LT(of("fsdp_mpt").mape, 5.5);
  EXPECT_LT(of("fsdp_mpt").median_ape, 4);
  EXPECT_LT(of("nemo_h100").mape, 7);
  EXPECT_LT(of("megatron_a100_3p6b").mape, 11);
  EXPECT_LT(of("torchtitan_h100").mape, 22);
  EXPECT_THAT(result->skipped, IsEmpty());
}

// Mean errors in percent by "test set".
std::map<std::string, double> errors_in(const std::filesystem::path& folder) {
  std::map<std::string, double> mape;
  const auto result = validate_iterations(folder, {.protocol = "shipped"});
  EXPECT_TRUE(result.ok()) << result.error().message();
  if (!result.ok()) return mape;
  for (const TestScore& test : result->tests) {
    for (const SetScore& set : test.sets) mape[test.test + " " + set.set] = set.metrics.mape;
  }
  return mape;
}

// GPUs of 2025 and 2026, and of another vendor.
TEST(IterationsSuite, StepsOfTheNewestTablesStayAsCloseAsTheyAre) {
  SKIP_WITHOUT_DATA();
  const auto folder = *test::measured_data() / "newer" / "iterations";
  if (!std::filesystem::is_directory(folder)) GTEST_SKIP() << folder << " is not there";
  const std::map<std::string, double> mape = errors_in(folder);
  EXPECT_LT(mape.at("steps bridge_dense_gb300"), 7);
  EXPECT_LT(mape.at("steps bridge_dense_gb300_lora"), 5);
  EXPECT_LT(mape.at("steps mlperf_llama2_lora"), 8);
}

// Steps of today's software, with their recipes.
TEST(IterationsSuite, StepsOfTodaysSoftwareStayAsCloseAsTheyAre) {
  SKIP_WITHOUT_DATA();
  const auto folder = *test::measured_data() / "modern" / "iterations";
  if (!std::filesystem::is_directory(folder)) GTEST_SKIP() << folder << " is not there";
  const std::map<std::string, double> mape = errors_in(folder);
  EXPECT_LT(mape.at("steps bridge_dense_h100"), 6);
  EXPECT_LT(mape.at("steps bridge_dense_b200"), 7);
  EXPECT_LT(mape.at("steps bridge_dense_gb200"), 6);
  EXPECT_LT(mape.at("steps mlperf_llama2_lora"), 12);
  EXPECT_LT(mape.at("steps mlperf_llama31_405b"), 6);
  EXPECT_LT(mape.at("steps mlperf_gpt3"), 8);
  EXPECT_FALSE(mape.contains("steps mlperf_bert"));
  EXPECT_LT(mape.at("packed_with_one_factor mlperf_bert"), 15);
}

// What the library says of published runs is what its forecasts of them are: `stepcast-lab published-runs` writes it.
TEST(PublishedRuns, TheShippedTableIsThatOfTheseForecasts) {
  SKIP_WITHOUT_DATA();
  const Result<std::string> fresh = published_runs_table(*test::measured_data() / "iterations");
  ASSERT_TRUE(fresh.ok()) << fresh.error().message();
  Result<CsvRows> now = CsvRows::open(*fresh, "now");
  Result<CsvRows> shipped = CsvRows::open(shipped_table("published_runs.csv"), "shipped");
  ASSERT_TRUE(now.ok() && shipped.ok());
  while (*now->next()) {
    ASSERT_TRUE(*shipped->next()) << "a row is missing";
    for (const char* key : {"source", "model", "gpu", "precision", "framework", "parameters", "runs"})
      EXPECT_EQ(now->cell(key), shipped->cell(key)) << "row " << now->line();
    for (const char* key :
         {"measured_over_forecast", "min_measured_over_forecast", "max_measured_over_forecast"})
      EXPECT_NEAR(*now->number(key, 0), *shipped->number(key, 0), 0.02) << "row " << now->line();
  }
  EXPECT_FALSE(*shipped->next());
}

}  // namespace
}  // namespace stepcast::iterations_suite_test
