#include "stepcast/report/detail/document_parts.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "stepcast/report/forecast_document.h"
#include "stepcast/report/html/charts.h"
#include "stepcast/report/html/schedule_chart.h"
#include "stepcast/report/text_table.h"

namespace stepcast::detail {

std::vector<ReportColumn> columns(std::string_view headings) {
  constexpr std::string_view kBetween = " | ";
  std::vector<ReportColumn> out;
  for (bool is_last = false; !is_last;) {
    const std::size_t end = headings.find(kBetween);
    is_last = end == std::string_view::npos;
    std::string_view heading = headings.substr(0, end);
    ReportColumn& column = out.emplace_back();
    if (const std::size_t key = heading.find('='); key != std::string_view::npos) {
      column.key = heading.substr(key + 1);
      heading = heading.substr(0, key);
    }
    if (heading.ends_with('@')) {
      column.shown = Shown::page;
      heading.remove_suffix(1);
    }
    if (heading.ends_with('<')) {
      column.is_number = false;
      heading.remove_suffix(1);
    }
    column.heading = heading;
    if (!is_last) headings.remove_prefix(end + kBetween.size());
  }
  return out;
}

std::string ms_text(double ms) {
  constexpr double kCoarse = 100, kMedium = 10;
  const double size = std::abs(ms);
  return table_number(ms, size >= kCoarse ? 1 : size >= kMedium ? 2 : 3);
}

std::string percent_text(double part, double whole) {
  return whole > 0 ? table_number(100 * part / whole, 1) : std::string{"-"};
}

std::string band_text(double p10_ms, double p90_ms) {
  if (p10_ms >= p90_ms) return {};
  return fmt::format("p10 {}, p90 {}", ms_text(p10_ms), ms_text(p90_ms));
}

std::string rate_band_text(double rate, double step_ms, double p10_ms, double p90_ms, int decimals) {
  if (p10_ms <= 0 || p10_ms >= p90_ms) return {};
  return fmt::format("p10 {}, p90 {}", table_number(rate * step_ms / p90_ms, decimals),
                     table_number(rate * step_ms / p10_ms, decimals));
}

ReportFigure parts_figure(const std::vector<ForecastClass>& classes, std::string caption) {
  BarChart chart{.unit = "ms"};
  double longest = 0;
  for (std::size_t c = 0; c < std::min(classes.size(), kMostClassesDrawn); ++c) {
    const ForecastClass& one = classes[c];
    Bar bar{.label = one.name, .parts = {}, .note = ms_text(one.window_ms) + " ms"};
    for (const NamedTime& part : one.parts()) {
      bar.parts.push_back({part_colour(part.key), part_text(part.key), part.time_ms});
    }
    longest = std::max(longest, one.window_ms);
    chart.bars.push_back(std::move(bar));
  }
  constexpr double kCoarse = 100;
  chart.decimals = longest >= kCoarse ? 1 : 2;
  if (classes.size() > kMostClassesDrawn) {
    caption += fmt::format(" The first {} of {} are drawn.", kMostClassesDrawn, classes.size());
  }
  return {bar_chart(chart), std::move(caption)};
}

ReportTable parts_table(const ForecastClass& one) {
  ReportTable table{columns("part< | ms | % of the step"), {}};
  for (const NamedTime& part : one.parts()) {
    if (part.time_ms < 5e-4 * one.window_ms) continue;
    ReportCell name{part_text(part.key)};
    name.swatch = part_colour(part.key);
    table.rows.push_back({std::move(name), ms_text(part.time_ms), percent_text(part.time_ms, one.window_ms)});
  }
  return table;
}

std::string gib(double value) { return table_number(value, 1); }

Bar memory_bar(std::string label, const ForecastStageMemory& stage, double available_GiB) {
  Bar bar{
      .label = std::move(label), .parts = {}, .note = gib(stage.total_GiB) + " GiB", .limit = available_GiB};
  for (const MemoryPart& part : kMemoryParts)
    bar.parts.push_back({part.colour, part.name, stage.*part.value});
  return bar;
}

ReportFigure memory_figure(std::vector<Bar> bars) {
  BarChart chart{.bars = std::move(bars), .unit = "GiB", .limit_name = "memory of a GPU"};
  if (!chart.bars.empty() && chart.bars.front().limit)
    chart.limit_name = fmt::format("{} GiB of a GPU", gib(*chart.bars.front().limit));
  return {bar_chart(chart), "Peak memory by what fills it; the dashed line is the memory of a GPU."};
}

std::string plural(std::int64_t n, std::string_view one, std::string_view many) {
  return fmt::format("{} {}", table_count(static_cast<std::uint64_t>(n)), n == 1 ? one : many);
}

std::string sentence(std::string text) {
  if (!text.empty()) text.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(text.front())));
  return text;
}

ReportTable shares_table(std::string heading, std::span<const ForecastShare> shares, double length_ms,
                         std::size_t most) {
  constexpr std::size_t kWidth = 100;
  ReportTable table{{{std::move(heading), false}, {"ms"}, {"% of path"}, {"steps"}}, {}};
  for (const ForecastShare& share : shares.first(std::min(most, shares.size()))) {
    table.rows.push_back({shorten(share.what, kWidth), ms_text(share.time_ms),
                          percent_text(share.time_ms, length_ms), table_count(share.steps)});
  }
  if (shares.size() > most) table.caption = fmt::format("and {} more", shares.size() - most);
  return table;
}

void add_critical_path(ReportDocument& document, const Forecast& forecast, const StepPicture* picture) {
  const ForecastPath& path = forecast.critical_path;
  if (path.length_ms <= 0) return;
  constexpr std::size_t kMost = 12;
  ReportSection section{"Critical path"};
  section.blocks.push_back(ReportText{fmt::format(
      "The chain of work and delays without a hole that the end of the step hangs on: {} ms in {} "
      "steps. Everything off the path has slack.",
      ms_text(path.length_ms), table_count(path.n_steps))});
  if (picture != nullptr && !picture->rows.empty()) {
    section.blocks.push_back(ReportFigure{schedule_chart(*picture),
                                          picture->rows.size() > 1
                                              ? "Every moment of the path is on one of these: where it moves "
                                                "to another rank, that one is waited for."
                                              : "All of the path is on one rank."});
  }
  section.blocks.push_back(shares_table("by class of work", path.by_class, path.length_ms, kMost));
  if (path.by_rank.size() > 1) {
    section.blocks.push_back(shares_table("by rank", path.by_rank, path.length_ms, kMost));
  }
  section.blocks.push_back(shares_table("longest contributors", path.by_name, path.length_ms, kMost));
  document.sections.push_back(std::move(section));
}

void add_streams(ReportDocument& document, const Forecast& forecast) {
  if (forecast.critical_class >= forecast.classes.size()) return;
  struct Part {
    const char *key, *colour, *name;
  };
  constexpr Part kParts[] = {{"embedding", "c-embedding", "embedding"},
                             {"gemm", "c-gemm", "gemm"},
                             {"attention", "c-attention", "attention"},
                             {"memory", "c-memory", "copies and memory"},
                             {"other", "c-elementwise", "other computation"},
                             {"communication_transfer", "c-warm", "communication: transfer"},
                             {"communication_waiting", "c-idle-other-rank", "communication: waiting"},
                             {"idle", "c-idle", "idle"}};
  const ForecastClass& one = forecast.critical();
  BarChart chart{.bars = {}, .unit = "ms", .decimals = one.window_ms < 100 ? 2 : 1};
  ReportTable table{columns("stream< | tasks"), {}};
  for (const Part& part : kParts) table.columns.push_back({part.name});
  for (const ForecastStream& stream : one.streams) {
    if (stream.tasks == 0) continue;
    Bar bar{.label = stream.name};
    std::vector<ReportCell> row{stream.name, table_count(stream.tasks)};
    for (const Part& part : kParts) {
      const double ms = time_ms(stream.parts_ms, part.key);
      bar.parts.push_back({part.colour, part.name, ms});
      row.emplace_back(ms_text(ms));
    }
    chart.bars.push_back(std::move(bar));
    table.rows.push_back(std::move(row));
  }
  if (table.rows.empty()) return;
  table.caption = "Times in ms; every row sums to the step. Streams overlap, so columns do not.";
  document.sections.push_back(
      {fmt::format("Streams of {}", one.name), {ReportFigure{bar_chart(chart), ""}, std::move(table)}});
}

void add_throughput_figures(ReportDocument& document, const Forecast& forecast, const std::string& under) {
  const ForecastThroughput& t = forecast.throughput;
  const auto band = [&](double rate, int decimals) {
    return rate_band_text(rate, forecast.step_time_ms, forecast.step_time_p10_ms, forecast.step_time_p90_ms,
                          decimals);
  };
  const auto detail = [](std::string more, const std::string& interval) {
    return interval.empty() ? more : more.empty() ? interval : interval + "; " + more;
  };
  const std::string source = band(1, 0).empty() ? std::string{} : std::string{to_string(forecast.source)};
  if (t.tokens_per_s_per_gpu && t.tokens_per_s) {
    document.figures.push_back(
        {"Tokens per second", table_number(*t.tokens_per_s, 0),
         detail(table_number(*t.tokens_per_s_per_gpu, 0) + " per GPU", band(*t.tokens_per_s, 0)), source,
         under + "throughput.tokens_per_s"});
  } else if (t.samples_per_s) {
    document.figures.push_back({"Samples per second", table_number(*t.samples_per_s, 0),
                                band(*t.samples_per_s, 0), source, under + "throughput.samples_per_s"});
  }
  if (t.mfu) {
    document.figures.push_back(
        {"MFU", table_number(100 * *t.mfu, 1) + " %",
         detail(t.tflops_per_gpu ? table_number(*t.tflops_per_gpu, 1) + " TFLOP/s per GPU" : std::string{},
                band(100 * *t.mfu, 1)),
         source, under + "throughput.mfu", 100});
  }
}

void add_training_section(ReportDocument& document, const Forecast& forecast) {
  if (!forecast.training) return;
  std::string text = training_text(forecast);
  document.sections.push_back({"", {TerminalText{text}}, false, Shown::terminal});
  text.erase(0, text.find_first_not_of('\n'));
  while (text.ends_with('\n')) text.pop_back();
  document.sections.push_back({"The whole training", {ReportText{std::move(text)}}, false, Shown::page});
}

void add_schedule(ReportDocument& document, std::string title, const StepPicture& picture,
                  std::string caption) {
  if (picture.rows.empty()) return;
  document.sections.push_back(
      {std::move(title), {ReportFigure{schedule_chart(picture), std::move(caption)}}});
}

}  // namespace stepcast::detail
