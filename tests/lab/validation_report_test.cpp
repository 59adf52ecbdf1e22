#include "lab/validation_report.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/report/json_check.h"

namespace stepcast::validation_report_test {
namespace {

using fixtures::parse_json;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;

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
  EXPECT_EQ(step["sets"][0]["interval_coverage"].kind, fixtures::Json::Kind::null);
  EXPECT_NEAR(step["sets"][1]["interval_coverage"].number, 100, 1e-9);
  // The primary test stands at the top too.
  EXPECT_EQ((*json)["overall"]["n"].number, 3);
  EXPECT_EQ((*json)["sets"].items.size(), 2U);
  EXPECT_EQ((*json)["skipped"][1]["what"].text, "c/y");
  // Absolute errors are extra keys; relative ones do not exist.
  const auto& starts = (*json)["tests"][1];
  EXPECT_EQ(starts["overall"]["mape"].kind, fixtures::Json::Kind::null);
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
  EXPECT_THAT(csv, HasSubstr("suite,test,set,row,unit,measured,predicted,p10,p90,shares\n"));
  EXPECT_THAT(csv, HasSubstr("replay,step_time,a,rank 0,ms,100.000000,110.000000,,,\n"));
  EXPECT_THAT(csv, HasSubstr("\"b, with a comma\",rank 0,ms,100.000000,120.000000,90.000000,130.000000,\n"));
}

TEST(ValidationReport, GroupsAreMeansOfTheirSets) {
  SuiteResult many;
  many.suite = "kernels";
  TestScore test;
  test.test = "held_out_rows";
  test.protocol = "refit";
  test.unit = "us";
  for (int i = 0; i < 30; ++i) {
    SetScore set;
    set.set = "gpu/op" + std::to_string(i);
    set.group = i % 2 == 0 ? "even" : "odd";
    set.rows = {{"row", 100, 100.0 + i, 90, 140}};
    if (i == 4) set.extras = {{"published_mape", 7}};
    test.sets.push_back(set);
  }
  test.finish();
  ASSERT_EQ(test.groups.size(), 2U);
  EXPECT_EQ(test.groups[0].group, "even");
  EXPECT_NEAR(test.groups[0].overall.mape, 14, 1e-9);
  EXPECT_NEAR(test.groups[1].overall.mape, 15, 1e-9);
  ASSERT_EQ(test.groups[0].extras.size(), 1U);
  EXPECT_EQ(test.groups[0].extras[0].value, 7);  // of the sets that have it
  ASSERT_EQ(test.extras.size(), 1U);
  EXPECT_EQ(test.extras[0].value, 7);
  many.tests = {test};
  const auto json = parse_json(validation_json(many));
  ASSERT_TRUE(json);
  EXPECT_EQ((*json)["tests"][0]["groups"][1]["group"].text, "odd");
  EXPECT_EQ((*json)["tests"][0]["groups"][1]["n_sets"].number, 15);
  EXPECT_EQ((*json)["tests"][0]["sets"].items.size(), 30U);
  EXPECT_THAT(validation_text(many), HasSubstr("gpu/op3 "));
}

TEST(ValidationReport, TargetsStandBesideWhatIs) {
  SuiteResult scored = result();
  scored.targets = {{.what = "errors", .value = 2, .must = 3, .aim = 1},
                    {.what = "share", .value = 80, .kind = Target::Kind::at_least, .must = 90, .aim = 100},
                    {.what = "coverage", .value = 91, .kind = Target::Kind::between, .from = 75, .to = 90},
                    {.what = "hope", .value = 5, .aim = 9},
                    {.what = "lost", .value = 10, .aim = 9}};
  const std::string text = validation_text(scored);
  EXPECT_THAT(text, ContainsRegex("errors +2.00  <= 3 +<= 1 +yes\n"));
  EXPECT_THAT(text, ContainsRegex("share +80.00  >= 90 +>= 100 +no\n"));
  EXPECT_THAT(text, ContainsRegex("coverage +91.00  75 to 90 +- +no\n"));
  EXPECT_THAT(text, ContainsRegex("hope +5.00  - +<= 9 +no must; aim reached\n"));
  EXPECT_THAT(text, ContainsRegex("lost +10.00  - +<= 9 +no must; aim missed\n"));
  const auto json = parse_json(validation_json(scored));
  ASSERT_TRUE(json);
  const auto& targets = (*json)["targets"];
  EXPECT_EQ(targets[1]["must"].number, 90);
  EXPECT_EQ(targets[2]["to"].number, 90);
  EXPECT_EQ(targets[2]["aim_met"].kind, fixtures::Json::Kind::null);
  // Nothing must be: nothing is met.
  EXPECT_EQ(targets[3]["met"].kind, fixtures::Json::Kind::null);
  EXPECT_EQ(targets[3]["must"].kind, fixtures::Json::Kind::null);
  EXPECT_NE(targets[3]["aim_met"].kind, fixtures::Json::Kind::null);
}

}  // namespace
}  // namespace stepcast::validation_report_test
