// Pages of whole answers: complete without network and script, with the answer inside, whatever names they hold.

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stepcast/api/stepcast.h"
#include "stepcast/plan/layout_plan.h"
#include "stepcast/platform/platform_file.h"
#include "stepcast/report/cell_text.h"
#include "stepcast/report/comparison_document.h"
#include "stepcast/report/first_screen.h"
#include "stepcast/report/html/assets.h"
#include "stepcast/report/html/charts.h"
#include "stepcast/report/inspect_answer.h"
#include "stepcast/report/log_document.h"
#include "stepcast/report/plan_answer.h"
#include "stepcast/report/replay_document.h"
#include "stepcast/report/scaling_series.h"

#include "tests/report/html_check.h"
#include "tests/support/paths.h"

namespace stepcast::test::report_pages_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

constexpr const char* kHostile =
    "</script><script>alert(1)</script>\"'><img src=x onerror=alert(1)>\x1B[31m\xE2\x80\xAE|`_*";

std::size_t count(const std::string& text, const std::string& what) {
  std::size_t n = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++n;
  return n;
}

// What holds for every page.
void expect_sound(const std::string& page, const std::string& json) {
  EXPECT_EQ(html_problem(page), "");
  EXPECT_THAT(page, HasSubstr("default-src 'none'"));
  EXPECT_THAT(page, HasSubstr("script-src '" + std::string{report_script_hash()} + "'"));
  EXPECT_EQ(count(page, "<script"), 2U);  // the answer, and ours
  EXPECT_THAT(page, Not(HasSubstr("<img")));
  EXPECT_THAT(page, Not(HasSubstr("src=\"")));
  EXPECT_THAT(page, Not(HasSubstr("\"nan")));
  std::string inside = embedded_json(page).value_or("none");
  for (std::size_t at = 0; (at = inside.find("\\u003c", at)) != std::string::npos;)
    inside.replace(at, 6, "<");
  EXPECT_EQ(inside, json);
}

// No row has more cells than there are columns; missing ones are empty.
void expect_tables_whole(const ReportDocument& document) {
  for (const ReportSection& section : document.sections) {
    for (const ReportBlock& block : section.blocks) {
      const auto* table = std::get_if<ReportTable>(&block.content);
      if (table == nullptr) continue;
      for (const auto& row : table->rows)
        EXPECT_LE(row.cells.size(), table->columns.size()) << section.title << ": " << row.cells.front().text;
    }
  }
}

Forecast small_forecast() {
  Forecast f;
  f.kind = "transformer";
  f.model = kHostile;
  f.n_gpus = 2;
  f.gpu = kHostile;
  f.step_time_ms = 10;
  f.step_time_p10_ms = 9;
  f.step_time_p90_ms = 12;
  f.source = EstimateSource::fitted;
  ForecastClass c;
  c.name = kHostile;
  c.window_ms = 10;
  c.computation_ms = 7;
  c.computation_by_class_ms = {{"gemm", 5}, {kHostile, 2}};
  c.exposed_comm_ms = 1;
  c.exposed_comm_by_group_ms = {{kHostile, 1}};
  c.idle_ms = {{"pipeline", 2}};
  f.classes = {c, c};
  f.layout = {{kHostile, std::string{kHostile}}, {"tensor_parallel", 2.0}};
  f.notes = {kHostile};
  f.critical_path.length_ms = 10;
  f.critical_path.by_class = {{kHostile, 10, 3}};
  f.coverage.unmodelled = {{kHostile, 3, 1.0}};
  f.coverage.assumed = 1;
  return f;
}

TEST(ReportPages, HostileNamesStayText) {
  const Forecast forecast = small_forecast();
  const Sensitivity sensitivity{10,
                                {{.resource = kHostile, .path_ms = 3, .elasticity = 0.3, .saved_ms = 0.3}}};
  StepPictures pictures;
  pictures.passes.length_ms = 10;
  pictures.passes.rows = {{.name = kHostile, .bars = {{0, 5, PicturePart::forward, 0}}, .transfers = {}}};
  const ReportDocument document = forecast_document(forecast, {&sensitivity, &pictures});
  const std::string page = report_html(document);
  expect_sound(page, forecast_json(forecast));
  EXPECT_THAT(page, Not(HasSubstr("<script>alert")));
  EXPECT_THAT(page, Not(HasSubstr("\x1B")));

  const std::string markdown = report_markdown(document);
  EXPECT_THAT(markdown, Not(HasSubstr("<script>")));
  EXPECT_THAT(markdown, HasSubstr("\\<script\\>"));
  EXPECT_THAT(markdown, Not(HasSubstr("\x1B")));

  const std::string fragment = report_fragment(document);
  EXPECT_EQ(html_problem(fragment), "");
  EXPECT_EQ(count(fragment, "<script"), 0U);
}

// 2432.9 ms and 14.7 % of the README would stand here as they do in the text: from the same Forecast.
TEST(ReportPages, VerdictSaysTimeBandAndTheLargestLoss) {
  Forecast f = small_forecast();
  f.classes[0].exposed_comm_by_group_ms = {{"tensor", 1}};
  EXPECT_EQ(
      forecast_verdict(f),
      "A step takes 10.0 ms (p10 9.00, p90 12.0). GPUs compute for 70.0 % of the step; the largest loss "
      "is idle: "
      "pipeline bubble (2.00 ms, 20.0 %).");
  // Three more stages that wait for tensors 4 ms each: 13 ms of 4 GPUs, of 40, against 2 of a bubble.
  ForecastClass waiting = f.classes[0];
  waiting.n_ranks = 3;
  waiting.idle_ms.clear();
  waiting.computation_ms = 6;
  waiting.computation_by_class_ms = {{"gemm", 6}};
  waiting.exposed_comm_by_group_ms = {{"tensor", 4}};
  f.classes[0].n_ranks = 1;
  f.classes[1] = waiting;
  EXPECT_THAT(
      forecast_verdict(f),
      HasSubstr("compute for 62.5 % of the step; the largest loss is exposed communication: tensor (3.25 ms, "
                "32.5 %)."));
  f.memory.emplace();
  f.memory->margin_GiB = -3.5;
  EXPECT_THAT(forecast_verdict(f), HasSubstr("and does not fit: 3.5 GiB of memory missing"));
}

TEST(ReportPages, DescribedStepShowsItsSchedule) {
  const Session session;
  PredictRequest request{.job = {.model = "llama-3-8b", .n_gpus = 32}, .platform = "dgx-h100"};
  request.job.settings.pipeline = 4;
  request.job.settings.global_batch_sequences = 64;
  request.open_layout = OpenLayout::as_said;
  const auto answer = session.report(request);
  ASSERT_TRUE(answer.ok()) << answer.error().message();
  const StepPicture& passes = answer->pictures.passes;
  ASSERT_EQ(passes.rows.size(), 4U);
  // 64 sequences over 8 data-parallel ranks: 8 micro-batches forward, 8 backward, one update.
  EXPECT_EQ(passes.rows[0].bars.size(), 17U);
  EXPECT_EQ(passes.rows[0].bars.front().part, PicturePart::forward);
  EXPECT_EQ(passes.rows[0].bars.back().part, PicturePart::update);
  EXPECT_NEAR(passes.length_ms, answer->forecast.step_time_ms, 1e-6 * passes.length_ms);
  EXPECT_EQ(answer->forecast.step_time_ms, session.predict(request)->step_time_ms);
  const ReportDocument document = forecast_document(answer->forecast, answer->illustrations());
  expect_tables_whole(document);
  const std::string page = report_html(document);
  expect_sound(page, forecast_json(answer->forecast));
  for (const char* title : {"Where the time goes", "Memory of a GPU", "Schedule of the pipeline",
                            "Time saved by a 10 % faster resource", "Sources of this forecast"}) {
    EXPECT_THAT(page, HasSubstr(title));
  }
}

// 8 samples in 10 ms on 2 GPUs are 800 a second; 32 in 20 ms on 8 are 1,600, and four times as many GPUs could do 3,200.
// Half as long and twice as long at p10 and p90 would not change that: the middle is compared.
TEST(ReportPages, SeriesOfGpusShowsWhatScalingCosts) {
  Forecast slower = small_forecast();
  slower.n_gpus = 8;
  slower.step_time_ms = 20;
  slower.step_time_p90_ms = 25;
  slower.classes[0].exposed_comm_ms = slower.classes[1].exposed_comm_ms = 11;
  const std::vector<ScalingPoint> series = {{2, 8, small_forecast(), 5}, {8, 32, slower, 5}};
  const ReportDocument document = scaling_series_document(series);
  EXPECT_EQ(document.verdict,
            "From 2 GPUs to 8 GPUs, samples per second change from 800 to 1,600: 50.0 % of linear scaling. "
            "Exposed communication changes from 10.0 to 55.0 % of the step.");
  expect_tables_whole(document);
  expect_sound(report_html(document), scaling_series_json(series));
  EXPECT_THAT(report_markdown(document),
              HasSubstr("| 8 | 32 | 20.000 | 9.000 | 25.000 | fitted | 5.000 | 1,600 | 50.0 |"));
}

// 1,000 samples a second with 4, 3,000 with 16, which does not fit: 4 it is.
TEST(ReportPages, SeriesOfBatchesNamesTheFastestThatFits) {
  Forecast small = small_forecast(), large = small_forecast();
  small.throughput.samples_per_s = 1000;
  large.throughput.samples_per_s = 3000;
  small.memory.emplace();
  small.memory->margin_GiB = 1;
  large.memory.emplace();
  large.memory->margin_GiB = -1;
  const std::vector<BatchForecast> series = {{4, small}, {16, large}};
  const ReportDocument document = batch_series_document(series);
  EXPECT_EQ(document.verdict,
            "Highest throughput with 4 samples per rank: 1,000 samples/s, in steps of 10.0 ms (p10 9.00, "
            "p90 12.0).");
  expect_tables_whole(document);
  expect_sound(report_html(document), batch_series_json(series));
  EXPECT_THAT(report_markdown(document), HasSubstr("| out of memory |"));
}

TEST(ReportPages, LogStandsBesideItsForecast) {
  const Session session;
  PredictLogRequest request{.log = source_dir() / "tests" / "golden" / "logs" / "train.log"};
  const auto plain = session.predict(request);
  request.pictures = true;
  const auto shown = session.predict(request);
  ASSERT_TRUE(shown.ok()) << shown.error().message();
  EXPECT_EQ(plain->forecast.step_time_ms, shown->forecast.step_time_ms);
  const Comparison& c = shown->comparison;
  const ReportDocument document =
      log_forecast_document(shown->forecast, *shown->run, c, shown->illustrations());
  EXPECT_THAT(document.verdict,
              StartsWith(fmt::format("The forecast is {} % off: ",
                                     table_signed(100 * (c.a_step_time_ms / c.b_step_time_ms - 1), 1))));
  expect_tables_whole(document);
  const std::string page = report_html(document);
  expect_sound(page, predicted_log_json(plain->forecast, *plain->run, plain->comparison));
  for (const char* title : {"Forecast and log", "Facts from the log", "Time saved by a 10 % faster resource"})
    EXPECT_THAT(page, HasSubstr(title));
}

TEST(ReportPages, RecordedStepsStandOneByOne) {
  Forecast f = small_forecast();
  ForecastSeries& series = f.series.emplace();
  series.steps = {{.step = 3, .step_time_ms = 10, .measured_ms = 8},
                  {.step = 4, .step_time_ms = 12, .measured_ms = 12},
                  {.step = 5, .step_time_ms = 40, .measured_ms = 40, .left_out = kHostile}};
  series.step = {.n = 2, .mean_ms = 11, .p50_ms = 11, .p90_ms = 12, .p99_ms = 12, .max_ms = 12};
  series.ranks = {{.rank = 0}, {.rank = 1, .gpu_ms = 3, .data_skew_ms = 0.5}};
  series.spread = {{.what = "gpu", .over_steps = 0.75, .over_ranks = 0.5}};
  const ReportDocument document = forecast_document(f);
  expect_tables_whole(document);
  expect_sound(report_html(document), forecast_json(f));
  const std::string markdown = report_markdown(document);
  EXPECT_THAT(markdown, HasSubstr("2 of 3 recorded steps are included"));
  EXPECT_THAT(markdown, HasSubstr("| 3 | 8.000 | 10.000 | +25.000 |"));  // 10 over 8
  EXPECT_THAT(markdown, HasSubstr("GPU 75 %"));
  EXPECT_THAT(markdown, HasSubstr("| 0.000 | 3.000 | +0.500 |"));
}

// Half of the scenarios take 10 ms, 90 of 100 at most 13, 99 at most 20: bars of 10, 3 and 7 ms.
TEST(ReportPages, ScenariosAreBarsOfQuantiles) {
  Forecast f = small_forecast();
  f.scenarios.emplace();
  f.scenarios->step = {.n = 100, .mean_ms = 11, .p50_ms = 10, .p90_ms = 13, .p99_ms = 20, .max_ms = 30};
  f.scenarios->ranks = {f.scenarios->step, f.scenarios->step};
  f.scenarios->tail = {{.rank = 1, .what = "gpu", .scenarios = 6, .share = 0.6, .mean_excess_ms = 2}};
  const ReportDocument document = forecast_document(f);
  expect_tables_whole(document);
  const std::string page = report_html(document);
  expect_sound(page, forecast_json(f));
  EXPECT_THAT(page, HasSubstr("longest rank: on to p90: 3.00 ms"));
  EXPECT_THAT(page, HasSubstr("longest rank: on to p99: 7.00 ms"));
  EXPECT_THAT(report_markdown(document), HasSubstr("| GPU of rank 1 | 6 | 60.0 | 2.000 |"));
}

TEST(ReportPages, ReplayShowsWhoWaitsForWhom) {
  const Session session;
  const auto replayed =
      session.replay({.places = {source_dir() / "examples" / "dlrm_4gpu"}, .pictures = true});
  ASSERT_TRUE(replayed.ok()) << replayed.error().message();
  ASSERT_EQ(replayed->pictures.ranks.rows.size(), 4U);
  // The rows of a rank sum to its step, however small the slots are.
  const ReportDocument document = replay_document(*replayed->analysis, {.pictures = &replayed->pictures});
  expect_tables_whole(document);
  for (std::size_t r = 0; r < 4; ++r) {
    double sum = 0;
    for (const PictureBar& bar : replayed->pictures.ranks.rows[r].bars) sum += bar.time_ms;
    EXPECT_NEAR(sum, replayed->simulated.classes[r].window_ms, 1e-9 * sum) << r;
  }
  const std::string page = report_html(document);
  expect_sound(page, replay_json(*replayed->analysis));
  EXPECT_THAT(page, HasSubstr("Ranks that others wait for"));
  EXPECT_THAT(page, HasSubstr("rank 0 - 3: 2.48 ms"));  // rank 0 waits for rank 3
  EXPECT_LT(page.size(), 400'000U);
}

TEST(ReportPages, PlanMarksTheChosenLayout) {
  const auto platform = load_platform("dgx-h100");
  ASSERT_TRUE(platform.ok());
  PlanRequest request;
  request.job.model = "llama-3-8b";
  request.job.settings.global_batch_sequences = 32;
  request.n_gpus = 8;
  const auto plan = plan_layouts(request, *platform);
  ASSERT_TRUE(plan.ok()) << plan.error().message();
  const PlanAnswer answer = plan_answer(*plan, {"dgx-h100", platform->device.name, 20});
  const std::string page = report_html(plan_document(answer));
  expect_sound(page, plan_json(answer));
  EXPECT_THAT(page, HasSubstr("Time against memory"));
  EXPECT_EQ(count(page, "<tr class=\"chosen\""), 1U);
  EXPECT_LT(page.size(), 2'000'000U);
}

// 10 ms against 13: gemm 5 -> 7 ms, the bubble 2 -> 3; what they leave is no part.
TEST(ReportPages, ComparisonIsAWaterfall) {
  const Forecast a = small_forecast();
  Forecast b = a;
  b.step_time_ms = 13.5;
  b.classes[0].computation_by_class_ms[0].time_ms = 7;
  b.classes[0].computation_ms = 9;
  b.classes[0].idle_ms = {{"pipeline", 3}};
  b.classes[0].window_ms = 13;
  const ComparisonAnswer answer{kHostile, "b.json", "fitted", "measured", compare(a, b)};
  const std::string page = report_html(comparison_document(answer));
  EXPECT_THAT(page,
              HasSubstr("<b>10.0 ms</b><span>p10 9.00, p90 12.0</span><em class=\"source\">fitted</em>"));
  EXPECT_THAT(page, HasSubstr("<em class=\"source\">measured</em>"));
  EXPECT_THAT(page, HasSubstr("+35.0 %; intervals overlap"));
  expect_sound(page, comparison_json(answer));
  EXPECT_THAT(page, HasSubstr("computation: gemm: +2.000 ms"));
  EXPECT_THAT(page, HasSubstr("idle: pipeline bubble: +1.000 ms"));
  EXPECT_THAT(page, HasSubstr("the rest: +0.500 ms"));
}

InspectedProfile small_profile() {
  InspectedProfile p{.file = kHostile, .events = 1234};
  p.summary.span = Microseconds{12000};
  p.summary.kernels = 2;
  p.summary.kernel_time[0] = Microseconds{1500};
  p.summary.usable_for_replay = true;
  p.summary.steps = {{.number = 1, .duration = Microseconds{3000}},
                     {.number = 2, .duration = Microseconds{5000}},
                     {.number = 3, .duration = Microseconds{9000}, .kind = StepKind::evaluation}};
  return p;
}

// Ordinary steps take 3 and 5 ms: 4 ms; the evaluation does not count.
TEST(ReportPages, InspectedFileSaysWhetherItIsUsable) {
  const InspectAnswer answer{.files = {small_profile()}};
  const ReportDocument document = inspect_page(answer);
  EXPECT_EQ(document.verdict, "Profiler trace (kineto). Usable: yes, for replay.");
  ASSERT_EQ(document.figures.size(), 3U);
  EXPECT_EQ(document.figures[0].value, "4.00 ms");
  EXPECT_EQ(document.figures[0].detail, "median of 2 steps");
  EXPECT_EQ(document.figures[1].detail, "1.500 ms");
  EXPECT_EQ(document.figures[2].value, "1,234");
  expect_tables_whole(document);
  const std::string page = report_html(document);
  expect_sound(page, inspect_json(answer));
  for (const char* title : {"<h2>Facts</h2>", "<h2>Steps</h2>", "<h2>Kernels</h2>"})
    EXPECT_THAT(page, HasSubstr(title));
}

// 21 profiles and one file that cannot be read: sections of the first 20, each with facts, steps and kernels.
TEST(ReportPages, InspectedFilesStandInOneTable) {
  InspectAnswer answer{.files = std::vector<InspectedFile>(21, small_profile())};
  answer.files.emplace_back(UnreadableFile{"b.json", "b.json: found an empty file"});
  const ReportDocument document = inspect_page(answer);
  EXPECT_EQ(document.verdict, "1 of 22 files cannot be read.");
  EXPECT_EQ(document.sections.size(), 1U + 20U * 3U);
  const std::string page = report_html(document);
  expect_sound(page, inspect_json(answer));
  EXPECT_THAT(page, HasSubstr("b.json: found an empty file"));
  EXPECT_THAT(page, HasSubstr("Sections exist for the first 20 files"));
}

// Of different jobs, that is said above the first percentage, and no axis is cut.
TEST(ReportPages, ComparisonOfDifferentJobsBeginsWithThat) {
  Forecast a = small_forecast(), b = a;
  a.parameters = 1'000'000'000;
  b.parameters = 2'000'000'000;
  b.step_time_ms = 10.5;
  const ComparisonAnswer answer{"a.json", "b.json", "fitted", "fitted", compare(a, b)};
  const ReportDocument document = comparison_document(answer);
  const std::string page = report_html(document), said = "These are different jobs: ";
  EXPECT_LT(page.find(said), page.find("+5.0 %")) << page;
  EXPECT_THAT(page, Not(HasSubstr("The axis does not start at zero.")));
  expect_sound(page, comparison_json(answer));
  for (const std::string& text :
       {report_text(document), first_screen_text(document), report_markdown(document), document.json}) {
    EXPECT_LT(text.find(said), text.find(" %")) << text;
    EXPECT_THAT(text, HasSubstr("5.0 %"));
  }
}

TEST(EmbeddedJson, IsNothingInOtherTexts) {
  EXPECT_FALSE(embedded_json("").has_value());
  EXPECT_FALSE(embedded_json("{\"schema\": \"stepcast.forecast/1\"}").has_value());
  EXPECT_FALSE(embedded_json("<script type=\"application/json\" id=\"stepcast-json\">{").has_value());
}

TEST(EmbeddedJson, IsReadBackAsTheSameForecast) {
  const Forecast forecast = small_forecast();
  const auto json = embedded_json(report_html(forecast_document(forecast)));
  ASSERT_TRUE(json.has_value());
  const auto back = forecast_from_json(*json);
  ASSERT_TRUE(back.ok()) << back.error().message();
  EXPECT_EQ(forecast_json(*back), forecast_json(forecast));
}

TEST(BarChart, DrawsEqualBarsOnceIfThereAreMany) {
  BarChart chart{.unit = "ms"};
  for (int rank = 0; rank < 32; ++rank)
    chart.bars.push_back(
        {.label = fmt::format("rank {}", rank), .parts = {{"c-accent", "step", 10}}, .note = "10 ms"});
  EXPECT_THAT(bar_chart(chart).str(), HasSubstr(">rank 31</text>"));
  for (const double length : {12, 10})
    chart.bars.push_back({.label = fmt::format("rank {}", chart.bars.size()),
                          .parts = {{"c-accent", "step", length}},
                          .note = fmt::format("{} ms", length)});
  const std::string grouped = bar_chart(chart).str();
  EXPECT_EQ(html_problem(grouped), "");
  EXPECT_THAT(grouped, HasSubstr(">ranks 0-31, 33</text>"));
  EXPECT_THAT(grouped, HasSubstr("10 ms, 33 equal"));
  EXPECT_THAT(grouped, HasSubstr("<summary>All 34 bars</summary>"));
  EXPECT_EQ(count(grouped, "<rect"), 2U + 34U);
}

TEST(WaterfallChart, HasPointsInsteadOfBarsOnAnAxisWithoutZero) {
  WaterfallChart chart{.from_name = "A", .to_name = "B", .from = 2200, .to = 2300};
  EXPECT_EQ(count(waterfall_chart(chart).str(), "<circle"), 2U);
  EXPECT_EQ(count(waterfall_chart(chart).str(), "<rect"), 1U);
  chart.from_zero = true;
  EXPECT_EQ(count(waterfall_chart(chart).str(), "<rect"), 3U);
  chart.from_zero = false;
  chart.to = 5000;
  EXPECT_EQ(count(waterfall_chart(chart).str(), "<circle"), 0U);
  EXPECT_EQ(count(waterfall_chart(chart).str(), "<rect"), 3U);
}

TEST(ReportPages, ManySectionsAreListed) {
  ReportDocument document{.title = "Sections"};
  for (const char* title : {"a", "b", "c", "d", "e"}) document.add(title, {ReportText{"text"}});
  EXPECT_THAT(report_html(document), Not(HasSubstr("<nav")));
  document.add("f", {ReportText{"text"}}).folded = true;
  EXPECT_THAT(report_html(document), HasSubstr("<a href=\"#section-6\">f</a>"));
  EXPECT_THAT(report_html(document),
              HasSubstr("<summary>f</summary><div class=\"blocks\" id=\"section-6\">"));
  EXPECT_THAT(report_fragment(document), Not(HasSubstr("<nav")));
}

TEST(ReportPages, PartOfAListSaysSo) {
  ReportTable table{"item_name<"};
  table.row({"a"});
  table.of = 1234;
  table.caption = "The rest is in the JSON.";
  ReportDocument document{.title = "Part"};
  document.add("Items", {std::move(table)});
  const std::string page = report_html(document);
  EXPECT_EQ(html_problem(page), "");
  EXPECT_THAT(page, HasSubstr("1 of 1,234 shown. The rest is in the JSON."));
  EXPECT_THAT(page, HasSubstr(">item_<wbr/>name</th>"));
}

TEST(TickText, HasThousandsSeparatorsAndNoExponents) {
  EXPECT_EQ(tick_text(0), "0");
  EXPECT_EQ(tick_text(0.25), "0.25");
  EXPECT_EQ(tick_text(500), "500");
  EXPECT_EQ(tick_text(5e7), "50,000,000");
}

TEST(RoundTicks, AreRoundAndInside) {
  EXPECT_THAT(round_ticks(0, 10, 5), ElementsAre(0, 2, 4, 6, 8, 10));
  EXPECT_THAT(round_ticks(3, 3, 5), IsEmpty());
  EXPECT_THAT(round_ticks(0, std::numeric_limits<double>::infinity(), 5), IsEmpty());
  EXPECT_THAT(round_ticks(-1, 1, 4), ElementsAre(-1, -0.5, 0, 0.5, 1));
}

}  // namespace
}  // namespace stepcast::test::report_pages_test
