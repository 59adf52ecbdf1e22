// The documents and the JSON of series: several batches of recorded steps, or several numbers of GPUs. Both
// kinds convert their forecasts to Point and share the sections of a page.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stepcast/report/cell_text.h"
#include "stepcast/report/detail/document_parts.h"
#include "stepcast/report/fields/answer_fields.h"
#include "stepcast/report/fields/field_table.h"
#include "stepcast/report/forecast_document.h"
#include "stepcast/report/html/charts.h"
#include "stepcast/report/scaling_series.h"

namespace stepcast {
namespace detail {

// The step time of a forecast in a series, with its interval and source. The columns are headings for tables.
void step_fields(auto& a, const Forecast& f, const TableColumn& step, const TableColumn& p10,
                 const TableColumn& p90) {
  a("step_time_ms", f.step_time_ms, "", step);
  a("step_time_p10_ms", f.step_time_p10_ms, "", p10);
  a("step_time_p90_ms", f.step_time_p90_ms, "", p90);
  column(a, {"rests on<@"}, f.source);
}

// The optional columns of a table: layouts, and expected step times if they differ from the forecasts.
struct ScalingColumns {
  bool layouts = false, promises = false;
};

// The members of one point. `first`: the first point of the series, which efficiency is relative to.
void fields(auto& a, Is<ScalingPoint> auto& point, const ScalingPoint& first, ScalingColumns shown) {
  const bool shows_layouts = shown.layouts;
  const Forecast& f = point.forecast;
  a("n_gpus", point.n_gpus, "", {"GPUs"});
  a("global_batch_samples", point.global_batch, "", {"batch"});
  a("layout", point.layout.empty() ? std::nullopt : std::optional{point.layout},
    "layout: parallel degrees, micro-batch, sharding; null: recommendation model",
    shows_layouts ? TableColumn{"layout<", 0, 1, ""}.at(1) : TableColumn{});
  a("micro_batch_sequences", point.micro_batch > 0 ? std::optional{point.micro_batch} : std::nullopt,
    "sequences per micro-batch; null: recommendation model",
    shows_layouts ? TableColumn{"micro-\nbatch", 0, 1, "0"} : TableColumn{});
  a("layout_source", point.layout_source.empty() ? std::nullopt : std::optional{point.layout_source},
    "source of the layout if you did not give it; null: you gave it");
  step_fields(a, f, {"step\nms", 3}, {"p10\nms", 3}, {"p90\nms", 3});
  a("promised_step_time_ms", f.promised_ms(), "expected",
    shown.promises ? TableColumn{"expected\nms", 3} : TableColumn{});
  a("bound_ms", point.bound_ms, "lower bound of the step time at peak rates, in ms", {"bound\nms", 3});
  a("samples_per_s", samples_per_second(point), "", {"samples\nper s"});
  a("efficiency", scaling_efficiency(first, point),
    "scaling efficiency: samples per second and GPU over those of the first point",
    {"efficiency\n%", 1, 100});
  a("tflops_per_gpu", f.throughput.tflops_per_gpu, "", {"TFLOP/s\nper GPU", 1, 1, ""});
  a("exposed_comm_share", exposed_share(f),
    "fraction of the step that is exposed communication, on the ranks that compute longest",
    {"exposed\ncomm %", 1, 100});
  a("peak_memory_GiB", f.memory ? std::optional{f.memory->peak_memory_GiB} : std::nullopt, "",
    {"memory\nGiB", 1, 1, ""});
  a("fits", f.fits());
  column(a, {"<"}, f.fits() ? "" : "does not fit");
}

// The JSON of a series over numbers of GPUs.
struct ScalingSeriesAnswer {
  std::span<const ScalingPoint> series;
};

constexpr AnswerHead answer_head(const ScalingSeriesAnswer*) {
  return {"stepcast.scaling_series/1", "stepcast predict --gpus A,B,... --json"};
}

void fields(auto& a, Is<ScalingSeriesAnswer> auto& s) {
  const ScalingPoint first = s.series.empty() ? ScalingPoint{} : s.series.front();
  a("model", first.forecast.model.value_or(""));
  a("platform", first.forecast.platform.value_or(""));
  a("gpu", first.forecast.gpu.value_or(""));
  a("points",
    Each{s.series, [&](auto& p, const ScalingPoint& point) { fields(p, point, first, ScalingColumns{}); }});
}

// The JSON of a series over batches.
struct BatchSeriesAnswer {
  std::span<const BatchForecast> series;
};

constexpr AnswerHead answer_head(const BatchSeriesAnswer*) {
  return {"stepcast.batch_series/1", "stepcast predict --trace DIR --batch A,B,... --json"};
}

// The members of one batch. The columns are those of the table.
void fields(auto& a, Is<BatchForecast> auto& one) {
  const Forecast& f = one.forecast;
  a("batch_per_rank", one.batch_per_rank, "samples", {"batch per rank"});
  step_fields(a, f, {"step ms", 3}, {"p10", 3}, {"p90", 3});
  a("samples_per_s", f.throughput.samples_per_s, "samples per second of all ranks", {"samples/s", 0, 1, ""});
  a("peak_memory_GiB", f.memory ? std::optional{f.memory->peak_memory_GiB} : std::nullopt,
    "peak memory of one GPU, in GiB", {"memory GiB", 1, 1, ""});
  a("available_GiB", f.memory ? std::optional{f.memory->available_GiB} : std::nullopt, "", {"of", 1, 1, ""});
  column(a, {"<"}, f.fits() ? "" : "out of memory");
  a("memory_verdict", f.memory ? std::optional{f.memory->verdict} : std::nullopt,
    "fits, tight, does not fit");
  a("notes", f.notes);
}

void fields(auto& a, Is<BatchSeriesAnswer> auto& s) {
  const Forecast first = s.series.empty() ? Forecast{} : s.series.front().forecast;
  a("traces", first.traces.value_or(""), "path of the traces");
  a("gpu", first.gpu.value_or(""), "name of the device");
  a("n_gpus", first.n_gpus, "number of recorded ranks");
  a("largest_batch_per_rank", largest_batch(s.series),
    "largest batch per rank that fits in memory; null: memory unknown");
  a("batches", s.series);
}

}  // namespace detail

namespace {

// One forecast of a series, as both kinds of series have it.
struct Point {
  std::string label;  // "16 GPUs"
  const Forecast* forecast = nullptr;
  double samples_per_s = 0;  // 0: unknown
  // Samples per second if the first point scaled without loss to this number of GPUs.
  std::optional<double> linear_rate{};

  [[nodiscard]] bool has_parts() const { return forecast->critical_class < forecast->classes.size(); }
};

// The most forecasts in a table of parts.
constexpr std::size_t kMostBeside = 12;

// Where the time goes in each forecast: a picture with a bar per forecast, and a table with a column per
// forecast.
void add_parts(ReportDocument& document, const std::vector<Point>& points) {
  BarChart chart{.bars = {}, .unit = "ms", .decimals = kByLength};
  ReportTable table{"part of the step, ms<"};
  std::vector<std::string> keys;
  for (const Point& point : points) {
    if (!point.has_parts()) continue;
    const ForecastClass& one = point.forecast->critical();
    for (const NamedTime& part : one.parts())
      if (std::ranges::find(keys, part.key) == keys.end()) keys.push_back(part.key);
    chart.bars.push_back(detail::parts_bar(point.label, one));
    if (chart.bars.size() <= kMostBeside) table.columns.push_back({point.label});
  }
  if (chart.bars.empty()) return;
  for (const std::string& key : keys) {
    ReportRow row{{detail::part_cell(key)}};
    bool matters = false;
    for (const Point& point : points) {
      if (!point.has_parts() || row.cells.size() == table.columns.size()) continue;
      const ForecastClass& one = point.forecast->critical();
      const double ms = time_ms(one.parts(), key);
      // Parts below 0.05 % in all forecasts are left out.
      matters = matters || ms >= 5e-4 * one.window_ms;
      row.cell(ms_text(ms));
    }
    if (matters) table.rows.push_back(std::move(row));
  }
  if (points.size() > kMostBeside)
    table.caption = fmt::format("The first {} of {}.", kMostBeside, points.size());
  document.add(
      "Where the time goes",
      {ReportFigure{bar_chart(chart), "Rank that ends last, from its start to its end."}, std::move(table)});
}

// Samples per second as bars, with a mark at the rate without loss if the series scales the GPUs.
void add_rates(ReportDocument& document, const std::vector<Point>& points) {
  BarChart chart{.bars = {},
                 .unit = "samples/s",
                 .limit_name = "linear scaling from the first line",
                 .decimals = 0,
                 .with_values = false};
  bool scaled = false;
  for (const Point& point : points) {
    if (point.samples_per_s <= 0) continue;
    scaled = scaled || point.linear_rate.has_value();
    chart.bars.push_back({.label = point.label,
                          .parts = {{"c-accent", "samples per second", point.samples_per_s}},
                          .note = table_number(point.samples_per_s, 0),
                          .limit = point.linear_rate});
  }
  if (chart.bars.empty()) return;
  chart.with_legend = scaled;
  if (!scaled) chart.limit_name.clear();
  document.add(
      "Samples per second",
      {ReportFigure{bar_chart(chart), scaled ? "The gap to the dashed line is the loss from linear scaling."
                                             : "Of all ranks together."}});
}

// The memory of the fullest GPU in each forecast.
void add_memory(ReportDocument& document, const std::vector<Point>& points) {
  std::vector<Bar> bars;
  for (const Point& point : points) {
    const auto& memory = point.forecast->memory;
    if (!memory || memory->worst_stage >= memory->stages.size()) continue;
    bars.push_back(
        detail::memory_bar(point.label, memory->stages[memory->worst_stage], memory->available_GiB));
  }
  if (!bars.empty()) document.add("Memory of the fullest GPU", {detail::memory_figure(std::move(bars))});
}

// The sources of each forecast's time, and the notes of the last one.
void add_grounds(ReportDocument& document, const std::vector<Point>& points) {
  ReportTable table{"< | measured % | fitted % | analytic % | assumed %"};
  for (const Point& point : points) {
    const ForecastCoverage& c = point.forecast->coverage;
    if (c.sum() <= 0) continue;
    table.row({point.label})
        .numbers({100 * c.measured, 100 * c.fitted, 100 * c.analytic, 100 * c.assumed}, 0);
  }
  table.caption =
      "Shares of the time of GPU work and communication. 80 % of measurements should lie between p10 and "
      "p90.";
  ReportSection& section = document.add("Sources of this forecast");
  if (!table.rows.empty()) section.add(std::move(table));
  if (const auto& notes = points.back().forecast->notes; !notes.empty()) section.add(ReportList{notes});
}

// The lines above the table in a terminal: "llama-3-8b on H100 (dgx-h100)".
std::string opening(const std::string& what, const std::string& on, const Forecast& first) {
  return fmt::format("{} on {}{}\n\n", what, on,
                     first.platform ? fmt::format(" ({})", *first.platform) : std::string{});
}

// The sections that follow the table on a page.
void add_page_sections(ReportDocument& document, const std::vector<Point>& points) {
  const std::size_t first = document.sections.size();
  add_parts(document, points);
  add_rates(document, points);
  add_memory(document, points);
  add_grounds(document, points);
  for (std::size_t s = first; s < document.sections.size(); ++s) document.sections[s].shown = Shown::page;
}

// The step time of a point as a key figure.
KeyFigure step_figure(const Point& point) {
  const Forecast& f = *point.forecast;
  return {"Step with " + point.label, duration_text(f.step_time_ms, f.step_time_p10_ms, f.step_time_p90_ms),
          band_text(f.step_time_ms, f.step_time_p10_ms, f.step_time_p90_ms),
          std::string{to_string(f.source)}};
}

// The batch with most samples per second among those that fit. The end of `series` if no rate is known.
auto fastest_of(std::span<const BatchForecast> series) {
  auto fastest = series.end();
  double best = 0;
  for (auto one = series.begin(); one != series.end(); ++one) {
    const double rate = one->forecast.throughput.samples_per_s.value_or(0);
    if (!one->forecast.fits() || rate <= best) continue;
    fastest = one;
    best = rate;
  }
  return fastest;
}

// The sentence on top: the batch with most samples per second, or the first and last step time if no rate is
// known.
std::string batch_verdict(std::span<const BatchForecast> series) {
  const auto samples = [](const BatchForecast& one) {
    return counted(one.batch_per_rank, "sample", "samples");
  };
  const auto fastest = fastest_of(series);
  if (fastest == series.end()) {
    return fmt::format("A step takes {} with {} and {} with {} per rank.",
                       duration_text(series.front().forecast.step_time_ms), samples(series.front()),
                       duration_text(series.back().forecast.step_time_ms), samples(series.back()));
  }
  const Forecast& f = fastest->forecast;
  return fmt::format("Highest throughput with {} per rank: {} samples/s, in steps of {} ({}).",
                     samples(*fastest), table_number(f.throughput.samples_per_s.value_or(0), 0),
                     duration_text(f.step_time_ms),
                     band_text(f.step_time_ms, f.step_time_p10_ms, f.step_time_p90_ms));
}

// One row per point.
ReportTable scaling_table(std::span<const ScalingPoint> series) {
  const bool has_layouts =
      std::ranges::any_of(series, [](const ScalingPoint& point) { return !point.layout.empty(); });
  const bool has_promises = std::ranges::any_of(series, [](const ScalingPoint& point) {
    return point.forecast.promised_ms() != point.forecast.step_time_ms;
  });
  ReportTable table;
  table.list = "points";
  for (const ScalingPoint& point : series)
    add_row(table, {}, point, series.front(), detail::ScalingColumns{has_layouts, has_promises});
  return table;
}

// The points with their labels. Labels contain the batch only if it differs between points with the same
// number of GPUs.
std::vector<Point> scaling_points(std::span<const ScalingPoint> series) {
  const ScalingPoint& first = series.front();
  // Whether a size differs between points with the same number of GPUs.
  const auto differ = [&](std::int64_t ScalingPoint::*size) {
    return std::ranges::any_of(series, [&](const ScalingPoint& point) {
      return std::ranges::any_of(series, [&](const ScalingPoint& other) {
        return other.n_gpus == point.n_gpus && other.*size != point.*size;
      });
    });
  };
  const bool several_batches = differ(&ScalingPoint::global_batch);
  const bool several_micro_batches = differ(&ScalingPoint::micro_batch);
  std::vector<Point> points;
  for (const ScalingPoint& point : series) {
    std::string label = counted(point.n_gpus, "GPU", "GPUs");
    if (several_batches) label += ", " + table_count(point.global_batch);
    if (several_micro_batches) label += fmt::format(", micro-batch {}", point.micro_batch);
    points.push_back({std::move(label), &point.forecast, samples_per_second(point),
                      samples_per_second(first) * static_cast<double>(point.n_gpus) /
                          static_cast<double>(std::max<std::int64_t>(1, first.n_gpus))});
  }
  return points;
}

// The content of the first screen: the first rows with the most important columns.
FirstScreen screen_of(ReportTable steps, const std::vector<std::string>& notes) {
  constexpr std::size_t kMostSteps = 10;
  steps.most = kMostSteps;
  steps.indent = 0;
  steps.on_first_screen = {"GPUs",    "batch",          "batch\nper rank", "step\nms",   "p10\nms",
                           "p90\nms", "samples\nper s", "efficiency\n%",   "memory\nGiB"};
  return {.blocks = {std::move(steps)}, .notes = notes};
}

}  // namespace

ReportDocument batch_series_document(std::span<const BatchForecast> series, Shown made_for) {
  const Forecast& first = series.front().forecast;
  ReportDocument document;
  document.made_for = made_for;
  document.title = fmt::format("{} on {} x {}, {} batches", first.traces.value_or("Traces"),
                               table_count(first.n_gpus), first.gpu.value_or("GPU"), series.size());
  if (first.platform) document.subject.push_back(*first.platform);
  document.verdict = batch_verdict(series);
  std::vector<Point> points;
  for (const BatchForecast& one : series) {
    points.push_back({counted(one.batch_per_rank, "sample", "samples"), &one.forecast,
                      one.forecast.throughput.samples_per_s.value_or(0)});
  }
  document.figures = {step_figure(points.front())};
  if (points.size() > 1) document.figures.push_back(step_figure(points.back()));
  ReportTable table = table_of(series);
  table.list = "batches";
  if (const auto fastest = fastest_of(series); fastest != series.end())
    table.emphasized = static_cast<std::size_t>(fastest - series.begin());
  ReportSection& section = document.add("Step times", {std::move(table)});
  section.opening = opening(first.traces.value_or("traces"),
                            fmt::format("{} x {}", first.n_gpus, first.gpu.value_or("GPU")), first);
  if (const auto largest = largest_batch(series)) {
    document.figures.push_back({"Largest batch that fits", table_count(*largest), "samples per rank",
                                "analytic", "largest_batch_per_rank"});
    // Terminals show this below the table; a page has it among the key figures.
    section.add(TerminalText{
        fmt::format("\n  largest batch that fits: {} samples per rank\n", table_count(*largest))});
  }
  section.add(TerminalText{"\n"});
  section.add(ReportList{series.back().forecast.notes, "note: "}, Shown::terminal);
  document.first_screen = screen_of(table_of(series), series.back().forecast.notes);
  if (!document.has_page()) return document;
  const std::size_t n_sections = document.sections.size();
  add_page_sections(document, points);
  document.keep_on_page(n_sections);
  document.json = batch_series_json(series);
  return document;
}

ReportDocument scaling_series_document(std::span<const ScalingPoint> series, Shown made_for) {
  const ScalingPoint& first = series.front();
  ReportDocument document;
  document.made_for = made_for;
  document.title = fmt::format("{} on {} to {} x {}", first.forecast.model.value_or("The model"),
                               table_count(first.n_gpus), table_count(series.back().n_gpus),
                               first.forecast.gpu.value_or("GPU"));
  if (first.forecast.platform) document.subject.push_back(*first.forecast.platform);
  const std::vector<Point> points = scaling_points(series);
  const ScalingPoint& last = series.back();
  document.verdict = fmt::format(
      "From {} to {}, samples per second change from {} to {}: {} % of linear scaling. Exposed communication "
      "changes from {} to {} % of the step.",
      points.front().label, points.back().label, table_number(samples_per_second(first), 0),
      table_number(samples_per_second(last), 0), table_number(100 * scaling_efficiency(first, last), 1),
      table_number(100 * exposed_share(first.forecast), 1),
      table_number(100 * exposed_share(last.forecast), 1));
  document.figures = {step_figure(points.front())};
  if (points.size() > 1) document.figures.push_back(step_figure(points.back()));
  document.figures.push_back({"Scaling efficiency",
                              table_number(100 * scaling_efficiency(first, last), 1) + " %",
                              "samples per second and GPU"});
  ReportSection& section =
      document.add("Step times", {scaling_table(series), TerminalText{"\n"},
                                  ReportText{"efficiency: samples per second and GPU over those of the first "
                                             "line; bound: lower bound at peak rates"}});
  if (!first.layout_source.empty()) {
    // The first line was searched and the others have the same layout, if their sources differ.
    const bool is_kept = series.back().layout_source != first.layout_source;
    section.add(ReportText{fmt::format("layout: {}{}", first.layout_source,
                                       is_kept             ? " for the first line and kept for the others"
                                       : series.size() > 1 ? ", for each line"
                                                           : "")});
  }
  if (!first.layout.empty()) {
    section.add(TerminalText{"\n"});
    section.add(ReportList{first.forecast.notes, "note: "}, Shown::terminal);
  }
  section.opening = opening(first.forecast.model.value_or("the model"), first.forecast.gpu.value_or("GPUs"),
                            first.forecast);
  document.first_screen = screen_of(scaling_table(series), first.forecast.notes);
  if (!document.has_page()) return document;
  const std::size_t n_sections = document.sections.size();
  add_page_sections(document, points);
  document.keep_on_page(n_sections);
  document.json = scaling_series_json(series);
  return document;
}

double samples_per_second(const ScalingPoint& point) {
  return static_cast<double>(point.global_batch) / (point.forecast.step_time_ms * 1e-3);
}

double exposed_share(const Forecast& f) {
  const auto busiest = std::ranges::max_element(
      f.classes, [](const auto& a, const auto& b) { return a.computation_ms < b.computation_ms; });
  return busiest == f.classes.end() || f.step_time_ms <= 0 ? 0 : busiest->exposed_comm_ms / f.step_time_ms;
}

double scaling_efficiency(const ScalingPoint& first, const ScalingPoint& point) {
  const double one = samples_per_second(first) / static_cast<double>(first.n_gpus);
  return one > 0 ? samples_per_second(point) / static_cast<double>(point.n_gpus) / one : 0;
}

std::optional<std::int64_t> largest_batch(std::span<const BatchForecast> series) {
  if (series.empty()) return std::nullopt;
  const BatchForecast& last = series.back();
  if (!last.forecast.memory || last.forecast.memory->stages.empty()) return std::nullopt;
  const ForecastMemory& memory = *last.forecast.memory;
  const double activations = memory.stages.front().activations_GiB;
  if (activations <= 0) return std::nullopt;
  // What is left for activations if everything else stays the same.
  const double room = memory.available_GiB - (memory.peak_memory_GiB - activations);
  const double batch =
      std::floor(std::max(0.0, room) / activations * static_cast<double>(last.batch_per_rank));
  // Beyond any real batch: the activations are negligible.
  if (!(batch < 1e15)) return std::nullopt;
  return static_cast<std::int64_t>(batch);
}

std::string scaling_series_json(std::span<const ScalingPoint> series) {
  return answer_json(detail::ScalingSeriesAnswer{series});
}

std::string scaling_series_schema() { return answer_schema<detail::ScalingSeriesAnswer>(); }

std::string batch_series_json(std::span<const BatchForecast> series) {
  return answer_json(detail::BatchSeriesAnswer{series});
}

std::string batch_series_schema() { return answer_schema<detail::BatchSeriesAnswer>(); }

}  // namespace stepcast
