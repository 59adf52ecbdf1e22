#include "stepcast/report/answers.h"

#include <cmath>
#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stepcast/api/stepcast.h"
#include "stepcast/base/file.h"
#include "stepcast/base/json_value.h"
#include "stepcast/platform/platform_file.h"
#include "stepcast/report/plan_answer.h"
#include "stepcast/report/scaling_series.h"

#include "tests/support/paths.h"

namespace stepcast::answers_test {
namespace {

std::filesystem::path schemas() { return test::source_dir() / "docs" / "schemas"; }

// `./dev docs` writes them anew.
TEST(Answers, AreDescribedByTheirSchemaFiles) {
  for (const AnswerSchema& answer : answer_schemas()) {
    const Result<std::string> text = read_file(schemas() / answer.name);
    ASSERT_TRUE(text.ok()) << text.error().message();
    EXPECT_EQ(*text, answer.text()) << answer.name;
  }
}

// The value at "memory.stages"; null where there is none.
const JsonValue* at(const JsonValue& json, std::string_view path) {
  const std::size_t dot = path.find('.');
  const JsonValue* value = json.find(path.substr(0, dot));
  return value == nullptr || dot == std::string_view::npos ? value : at(*value, path.substr(dot + 1));
}

// Whether "1,234.5" is how 1234.52 is shown: rounded to the decimals that it has. A time in milliseconds may be shown in s or us.
bool shows(std::string_view text, double number) {
  std::string digits;
  double unit = 1;
  for (const char c : text.substr(0, text.find(' '))) {
    if (c != ',') digits += c;
  }
  if (const std::size_t point = digits.find('.'); point != std::string::npos) {
    unit = std::pow(10.0, -static_cast<double>(digits.size() - point - 1));
  }
  const double scale = text.ends_with(" s") ? 1e-3 : text.ends_with(" us") ? 1e3 : 1;
  return std::abs(std::stod(digits) - scale * number) <= 0.5001 * unit;
}

// How many numbers of the document were held to the members of the JSON that they show.
std::size_t expect_one_number(const ReportDocument& document) {
  const Result<JsonValue> json = parse_json(document.json, "answer");
  EXPECT_TRUE(json.ok());
  std::size_t checked = 0;
  const auto check = [&](const std::string& text, const JsonValue* value, double scale,
                         const std::string& key) {
    ASSERT_NE(value, nullptr) << key;
    if (value->is_null()) return;
    EXPECT_TRUE(shows(text, scale * value->number())) << key << ": " << text << ", " << value->number();
    ++checked;
  };
  for (const KeyFigure& figure : document.figures) {
    if (!figure.key.empty()) check(figure.value, at(*json, figure.key), figure.scale, figure.key);
  }
  for (const ReportSection& section : document.sections) {
    for (const ReportBlock& block : section.blocks) {
      const auto* table = std::get_if<ReportTable>(&block.content);
      if (table == nullptr || table->list.empty()) continue;
      const JsonValue* items = at(*json, table->list);
      if (items == nullptr) {
        ADD_FAILURE() << table->list;
        continue;
      }
      for (std::size_t r = 0; r < table->rows.size() && r < items->items().size(); ++r) {
        for (std::size_t c = 0; c < table->columns.size(); ++c) {
          const std::string& key = table->columns[c].key;
          if (!key.empty()) check(table->rows[r].cells[c].text, items->items()[r].find(key), 1, key);
        }
      }
    }
  }
  return checked;
}

TEST(Answers, ShowTheNumbersOfTheirJson) {
  const Session session;
  PredictRequest request{.job = {.model = "llama-3-8b", .n_gpus = 32}, .platform = "dgx-h100"};
  request.job.settings.pipeline = 4;
  request.job.settings.global_batch_sequences = 64;
  const auto answer = session.report(request);
  ASSERT_TRUE(answer.ok()) << answer.error().message();
  const Forecast& f = answer->forecast;
  EXPECT_GE(expect_one_number(forecast_document(f, answer->illustrations())), 4U + 4U);
  const std::vector<ScalingPoint> points{{.n_gpus = 32, .global_batch = 64, .forecast = f, .bound_ms = 1.25},
                                         {.n_gpus = 64, .global_batch = 64, .forecast = f, .bound_ms = 1.25}};
  EXPECT_GE(expect_one_number(scaling_series_document(points)), 2U * 8U);
  const std::vector<BatchForecast> batches{{.batch_per_rank = 2, .forecast = f}};
  EXPECT_GE(expect_one_number(batch_series_document(batches)), 6U);
  const auto replayed = session.replay({.places = {test::source_dir() / "examples" / "dlrm_4gpu"}});
  ASSERT_TRUE(replayed.ok()) << replayed.error().message();
  EXPECT_GE(expect_one_number(replay_document(*replayed->analysis)), 2U + 4U * 3U);
  const Result<Platform> platform = load_platform("dgx-h100");
  ASSERT_TRUE(platform.ok());
  PlanRequest plan{.job = {.model = "llama-3-8b"}, .n_gpus = 32, .refines = true};
  plan.job.settings.global_batch_sequences = 128;
  const auto planned = plan_layouts(plan, *platform);
  ASSERT_TRUE(planned.ok()) << planned.error().message();
  const PlanAnswer recommended = plan_answer(*planned, {"dgx-h100", platform->device.name, 20});
  EXPECT_GE(expect_one_number(plan_document(recommended)), 2U + 20U * 5U);
  EXPECT_THAT(report_text(plan_document(recommended)),
              ::testing::HasSubstr(to_string(chosen_layout(*planned).point)));
  // The step of a replay is that of its forecasts.
  const Result<JsonValue> json = parse_json(replay_json(*replayed->analysis), "replay");
  ASSERT_TRUE(json.ok());
  EXPECT_NEAR(at(*json, "step_time_ms")->number(), at(*json, "simulated.step_time_ms")->number(), 1e-6);
  EXPECT_NEAR(at(*json, "measured_step_time_ms")->number(), at(*json, "measured.step_time_ms")->number(),
              1e-6);
}

}  // namespace
}  // namespace stepcast::answers_test
