#include "stepcast/report/result_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stepcast/analyze/compare.h"
#include "stepcast/base/output_file.h"
#include "stepcast/report/forecast_json.h"

#include "tests/support/temporary_folder.h"

namespace stepcast {
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
              HasSubstr("a document `stepcast.plan/1`, which holds no one step"));
  EXPECT_THAT(parse_result("[1]", "a.json").error().message(), HasSubstr("expected what predict, replay"));
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
  EXPECT_EQ(
      c.verdict,
      "B takes 3.0 % longer than A (103.0 against 100.0 ms), most of it computation: gemm (+2.4 ms); their "
      "intervals p10 to p90 overlap");
  ASSERT_EQ(c.groups.size(), 1U);
  EXPECT_EQ(c.groups[0].key, "data");
}

}  // namespace
}  // namespace stepcast
