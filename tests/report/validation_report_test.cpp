#include "stepcast/report/validation_report.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/report/json_check.h"

namespace stepcast {
namespace {

using ::testing::HasSubstr;
using testing::parse_json;

SuiteResult result() {
  SuiteResult result;
  result.suite = "replay";
  TestScore test;
  test.test = "step_time";
  test.protocol = "recorded";
  test.unit = "ms";
  SetScore a, b;
  a.set = "a";
  a.rows = {{"rank 0", 100, 110, {}, {}}, {"rank 1", 100, 90, {}, {}}};
  b.set = "b, with a comma";
  b.rows = {{"rank 0", 100, 120, 90, 130}};
  test.sets = {a, b};
  test.finish();
  TestScore starts;
  starts.test = "kernel_starts";
  starts.protocol = "recorded";
  starts.unit = "us";
  starts.relative = false;
  SetScore s;
  s.set = "a";
  s.rows = {{"rank 0", 0, 4, {}, {}}};
  s.extras = {{"worst_p95_us", 9.5, ExtraMetric::Over::max}};
  starts.sets = {s};
  starts.finish();
  result.tests = {test, starts};
  result.skipped = {{"c/x", "holds no times", 1}, {"c/y", "holds no times", 1}};
  return result;
}

TEST(ValidationReport, KeepsTheContractOfTheJsonObject) {
  const auto json = parse_json(validation_json(result()));
  ASSERT_TRUE(json);
  EXPECT_EQ((*json)["suite"].text, "replay");
  EXPECT_TRUE(json->has("version"));
  const auto& step = (*json)["tests"][0];
  EXPECT_EQ(step["test"].text, "step_time");
  EXPECT_EQ(step["protocol"].text, "recorded");
  EXPECT_EQ(step["overall"]["n"].number, 3);
  EXPECT_NEAR(step["overall"]["mape"].number, 15, 1e-9);       // mean of 10 and 20
  EXPECT_NEAR(step["pooled"]["mape"].number, 40.0 / 3, 1e-5);  // mean of 10, 10 and 20
  EXPECT_NEAR(step["overall"]["bias"].number, 10, 1e-9);       // mean of 0 and 20
  EXPECT_EQ(step["sets"][0]["set"].text, "a");
  EXPECT_EQ(step["sets"][0]["n_fit"].number, 0);
  EXPECT_EQ(step["sets"][0]["interval_coverage"].kind, testing::Json::Kind::null);
  EXPECT_NEAR(step["sets"][1]["interval_coverage"].number, 100, 1e-9);
  // The primary test stands at the top too.
  EXPECT_EQ((*json)["overall"]["n"].number, 3);
  EXPECT_EQ((*json)["sets"].items.size(), 2U);
  EXPECT_EQ((*json)["skipped"][1]["what"].text, "c/y");
  // Absolute errors are extra keys; relative ones do not exist.
  const auto& starts = (*json)["tests"][1];
  EXPECT_EQ(starts["overall"]["mape"].kind, testing::Json::Kind::null);
  EXPECT_NEAR(starts["overall"]["worst_p95_us"].number, 9.5, 1e-9);
}

TEST(ValidationReport, TableNamesSetsAndWhatWasLeftOutOncePerReason) {
  const std::string text = validation_text(result());
  EXPECT_THAT(text, HasSubstr("step_time (ms; protocol: recorded)"));
  EXPECT_THAT(text, HasSubstr("mean over sets"));
  EXPECT_THAT(text, HasSubstr("  - c/x, c/y: holds no times\n"));
}

TEST(ValidationReport, RowsAreCsv) {
  const std::vector<SuiteResult> results{result()};
  const std::string csv = validation_rows_csv(results);
  EXPECT_THAT(csv, HasSubstr("suite,test,set,row,unit,measured,predicted,p10,p90\n"));
  EXPECT_THAT(csv, HasSubstr("replay,step_time,a,rank 0,ms,100.000000,110.000000,,\n"));
  EXPECT_THAT(csv, HasSubstr("\"b, with a comma\",rank 0,ms,100.000000,120.000000,90.000000,130.000000\n"));
}

TEST(ValidationReport, PageHasASectionPerSuite) {
  const std::vector<SuiteResult> results{result()};
  const std::string page = accuracy_page(results, "../shared/data");
  EXPECT_THAT(page, HasSubstr("# Accuracy\n"));
  EXPECT_THAT(page, HasSubstr("\n## replay\n"));
  EXPECT_THAT(page, HasSubstr("| a | 2 | 10.000 |"));
  EXPECT_TRUE(parse_json(validation_json(results)));
}

}  // namespace
}  // namespace stepcast
