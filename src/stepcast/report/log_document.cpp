#include "stepcast/report/log_document.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stepcast/report/detail/document_parts.h"
#include "stepcast/report/detail/log_words.h"
#include "stepcast/report/html/charts.h"
#include "stepcast/report/log_report.h"
#include "stepcast/report/text_table.h"

namespace stepcast {
namespace {

using detail::band_text;
using detail::ms_text;
using detail::plural;

std::string per_gpu(double tflops) { return table_number(tflops, 1) + " TFLOP/s per GPU"; }

std::string error_text(const Comparison& c) {
  return table_signed(100 * (c.a_step_time_ms / c.b_step_time_ms - 1), 1) + " %";
}

std::string measured_from(const LoggedTimes& t) {
  return t.whole_run ? std::string{"mean of the whole run"}
                     : "median of " + plural(static_cast<std::int64_t>(t.n), "line", "lines");
}

ReportSection against_the_log(const Forecast& f, const LoggedRun& run, const Comparison& c) {
  const LoggedTimes& t = run.times;
  BarChart chart{.bars = {{.label = "forecast",
                           .parts = {{"c-alike", "forecast", c.a_step_time_ms}},
                           .note = band_text(c.a_p10_ms, c.a_p90_ms)},
                          {.label = "measured",
                           .parts = {{"c-accent", "measured", c.b_step_time_ms}},
                           .note = band_text(c.b_p10_ms, c.b_p90_ms)}},
                 .unit = "ms",
                 .with_legend = false};
  ReportTable table{{{"", false}, {"forecast"}, {"log"}, {"", false}}, {}};
  table.rows.push_back({"step ms", ms_text(c.a_step_time_ms), ms_text(c.b_step_time_ms), measured_from(t)});
  if (!t.whole_run) {
    table.rows.push_back({"p10 ms", ms_text(c.a_p10_ms), ms_text(c.b_p10_ms), ""});
    table.rows.push_back({"p90 ms", ms_text(c.a_p90_ms), ms_text(c.b_p90_ms), ""});
  }
  if (f.memory && run.log.peak_memory_GiB > 0) {
    table.rows.push_back({"memory GiB", detail::gib(f.memory->peak_memory_GiB),
                          detail::gib(run.log.peak_memory_GiB), "the most that the log tells"});
  }
  if (f.throughput.tflops_per_gpu && t.tflops_per_gpu > 0) {
    const double ours = *f.throughput.tflops_per_gpu * c.a_step_time_ms / c.b_step_time_ms;
    table.rows.push_back({"TFLOP/s per GPU", table_number(*f.throughput.tflops_per_gpu, 1),
                          table_number(t.tflops_per_gpu, 1),
                          fmt::format("by the log's count; by ours {} at the measured step", per_gpu(ours))});
  }
  return {"Forecast and log", {ReportFigure{bar_chart(chart), ""}, std::move(table)}};
}

ReportSection what_the_log_tells(const LoggedRun& run) {
  constexpr std::size_t kMostStalls = 10;
  const LoggedTimes& t = run.times;
  ReportSection section{"What the log tells"};
  ReportTable table{{{"", false}, {"", false}}, {}};
  table.rows.push_back({"format", detail::log_format_text(run)});
  table.rows.push_back({"steps", detail::steps_text(run)});
  if (const std::string rates = detail::rates_text(t); !rates.empty())
    table.rows.push_back({"throughput", rates});
  if (!t.whole_run) {
    table.rows.push_back({"trend", detail::trend_text(t)});
    table.rows.push_back({"stalls", t.stalls.empty() ? std::string{"none"} : detail::stalls_text(t)});
  }
  for (const LoggedRestart& r : t.restarts) {
    table.rows.push_back({"restart", fmt::format("line {}: step {} behind step {}", table_count(r.line),
                                                 table_count(r.next_step), table_count(r.last_step))});
  }
  section.blocks.emplace_back(std::move(table));
  if (t.stalls.empty()) return section;
  ReportTable stalls{{{"stall at step"}, {"line"}, {"lost s"}, {"where", false}, {"likely", false}}, {}};
  for (const LoggedStall& s : detail::longest(t.stalls, kMostStalls)) {
    stalls.rows.push_back({table_count(s.step), table_count(s.line), table_number(s.lost_ms * 1e-3, 1),
                           s.between_steps ? "before the step" : "in the step",
                           std::string{detail::cause_text(s.cause)}});
  }
  if (t.stalls.size() > kMostStalls)
    stalls.caption = fmt::format("The longest {} of {}.", kMostStalls, table_count(t.stalls.size()));
  section.blocks.emplace_back(std::move(stalls));
  return section;
}

}  // namespace

ReportDocument log_forecast_document(const Forecast& forecast, const LoggedRun& run, const Comparison& c,
                                     const ForecastIllustrations& illustrations) {
  ReportDocument document = forecast_document(forecast, illustrations);
  document.subject.insert(document.subject.begin(),
                          fmt::format("held against {}; settings from {}", run.log.file, run.job->source));
  document.verdict = fmt::format("The forecast is {} off: {} ms against {} ms measured. {}.", error_text(c),
                                 ms_text(c.a_step_time_ms), ms_text(c.b_step_time_ms),
                                 detail::sentence(detail::reason_of(forecast, run, c)));
  document.figures.front().label = "Forecast step";
  document.figures.insert(
      document.figures.begin() + 1,
      {{"Measured step", ms_text(c.b_step_time_ms) + " ms", band_text(c.b_p10_ms, c.b_p90_ms), "measured"},
       {"Forecast less log", error_text(c),
        fmt::format("intervals {}", c.intervals_overlap ? "overlap" : "do not overlap")}});
  document.sections.insert(document.sections.begin(),
                           {against_the_log(forecast, run, c), what_the_log_tells(run)});
  Forecast plain = forecast;  // --json has no operations of layers
  plain.explained.clear();
  document.json = predicted_log_json(plain, run, c);
  return document;
}

}  // namespace stepcast
