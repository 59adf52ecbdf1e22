#include "stepcast/report/result_reader.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stepcast/analyze/compare.h"
#include "stepcast/base/output_file.h"
#include "stepcast/report/forecast_json.h"
#include "stepcast/report/html/page.h"

#include "tests/support/temporary_folder.h"

namespace stepcast::result_reader_test {
namespace {

using ::testing::HasSubstr;

Forecast made(double step_ms) {
  Forecast f;
  f.kind = "transformer";
  f.step_time_ms = step_ms;
  f.step_time_p10_ms = 0.9 * step_ms;
  f.step_time_p90_ms = 1.1 * step_ms;
  ForecastClass c;
  c.name = "pipeline stage 0";
  c.window_ms = step_ms;
  c.computation_by_class_ms = {{"gemm", 0.8 * step_ms}};
  c.exposed_comm_by_group_ms = {{"data", 0.2 * step_ms}};
  f.classes = {c};
  return f;
}

TEST(ResultReader, TakesForecastsOutOfHtml) {
  const std::string json = forecast_json(made(100));
  const auto plain = parse_result(json, "a.json");
  ASSERT_TRUE(plain.ok()) << plain.error().message();
  const auto html = parse_result(
      "<!doctype html>\n<script type=\"application/json\" id=\"stepcast-json\">\n" + json + "</script><p>",
      "a.html");
  ASSERT_TRUE(html.ok()) << html.error().message();
  EXPECT_EQ(*plain, *html);
  EXPECT_THAT(
      parse_result("<html></html>", "a.html").error().message(),
      HasSubstr("a.html: found HTML without <script type=\"application/json\" id=\"stepcast-json\">"));
  EXPECT_THAT(parse_result("{\"schema\": \"stepcast.plan/1\"}", "a.json").error().message(),
              HasSubstr("a document `stepcast.plan/1`, which does not have exactly one step"));
  EXPECT_THAT(parse_result("[1]", "a.json").error().message(),
              HasSubstr("expected output of predict, replay"));
}

// What somebody's editor, or somebody's bad will, makes of a page.
TEST(ResultReader, RefusesPagesThatWereSpoilt) {
  const std::string json = forecast_json(made(100));
  const std::string page = report_html({.title = "A step", .json = json});
  const std::size_t begin = page.find(json.substr(0, 20));
  ASSERT_NE(begin, std::string::npos);
  const auto spoilt = [&](std::string_view from, std::string_view to) {
    std::string text = page;
    const std::size_t at = text.find(from, begin);
    EXPECT_NE(at, std::string::npos) << from;
    return text.replace(at, from.size(), to);
  };
  ASSERT_TRUE(parse_result(page, "a.html").ok());
  EXPECT_EQ(*parse_result(page, "a.html"), *parse_result(json, "a.json"));
  EXPECT_EQ(*parse_result(spoilt("{", "\n\r\n\t {"), "a.html"), *parse_result(json, "a.json"));
  const auto time =
      json.substr(json.find("\"step_time_ms\""), json.substr(json.find("\"step_time_ms\"")).find(','));
  // The JSON begins somewhere below line 1: its lines are those of the page.
  const auto line =
      1 + std::count(page.begin(), page.begin() + static_cast<std::ptrdiff_t>(page.find(time)), '\n');
  const std::string at_line = "a.html: line " + std::to_string(line) + ": ";
  const std::vector<std::pair<std::string, std::string>> cases = {
      {page.substr(0, begin + 30), "found HTML without <script"},
      {page.substr(0, begin) + page.substr(page.find("</script>", begin)), "found no content"},
      {page.substr(0, begin + 200) + "</script>", "not valid JSON"},
      {spoilt("stepcast.forecast/", "stepcast.forecast/9"), "written by another version of stepcast"},
      {spoilt(time, "\"step_time_ms\": 1e999"), at_line + "found `1e999`, expected a finite number"},
      {spoilt(time, "\"step_time_ms\": NaN"), at_line + "found `NaN`"},
      {spoilt(time, "\"step_time_ms\": \"100\""), at_line + "step_time_ms: found `100`, expected a number"},
      {spoilt(time, "\"step_time_ms\": -1"), "step_time_ms: found -1, expected a time of 0 or more"},
      {spoilt("\"step_time_p10_ms\": ", "\"step_time_p10_ms\": 9"), "at most step_time_p90_ms"},
      {spoilt("\"critical_class\": 0", "\"critical_class\": 7"), "critical_class: found 7"},
      {spoilt("{", std::string(100'000, '[')), "too deeply nested"},
      {spoilt("{", "<script type=\"application/json\" id=\"stepcast-json\">{"),
       "found HTML without <script"}};
  for (const auto& [text, expected] : cases) {
    const auto read = parse_result(text, "a.html");
    ASSERT_FALSE(read.ok()) << expected;
    EXPECT_THAT(read.error().message(), HasSubstr(expected));
    EXPECT_EQ(read.error().message().find('\n'), std::string::npos);
  }
}

// 100 ms forecast, 120 ms logged: gemm alone would be 80 + 20 over 80, exposed communication 20 + 20 over 20.
TEST(ResultReader, ComparesAForecastWithALog) {
  const test::TemporaryFolder folder;
  std::string text;
  for (int i = 1; i <= 20; ++i)
    text += " iteration " + std::to_string(i) + "/ 20 | elapsed time per iteration (ms): 120.0 |\n";
  ASSERT_TRUE(write_file(folder.path() / "train.log", text).ok());
  const Forecast forecast = made(100);
  const auto log = read_result(folder.path() / "train.log", {.beside = &forecast});
  ASSERT_TRUE(log.ok()) << log.error().message();
  EXPECT_EQ(log->kind, "log");
  const Comparison c = compare(forecast, *log);
  EXPECT_EQ(c.verdict,
            "the log takes 20.0 % longer than the forecast (120.0 against 100.0 ms); their intervals p10 to "
            "p90 do not "
            "overlap");
  ASSERT_EQ(c.explanations.size(), 2U);
  EXPECT_EQ(c.explanations[0].part, "exposed communication: data");  // ln 2 / 0.4 = 1.7
  EXPECT_DOUBLE_EQ(c.explanations[0].factor, 2);
  EXPECT_DOUBLE_EQ(c.explanations[1].factor, 1.25);  // ln 1.25 / 0.1 = 2.2
  EXPECT_TRUE(c.settings.empty());
}

TEST(ResultReader, NamesWhatDiffersMost) {
  Forecast slower = made(103);
  const Comparison c = compare(made(100), slower);
  EXPECT_EQ(c.verdict,
            "B takes 3.0 % longer than A (103.0 against 100.0 ms), mostly computation: gemm (+2.4 ms); their "
            "intervals p10 to p90 overlap");
  ASSERT_EQ(c.groups.size(), 1U);
  EXPECT_EQ(c.groups[0].key, "data");
}

}  // namespace
}  // namespace stepcast::result_reader_test
