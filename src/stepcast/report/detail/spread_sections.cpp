
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stepcast/report/cell_text.h"
#include "stepcast/report/detail/document_parts.h"
#include "stepcast/report/fields/field_table.h"
#include "stepcast/report/html/charts.h"

namespace stepcast::detail {
namespace {

// Limits of pictures and tables: steps in a picture; steps in a terminal; steps in a table that is
// not folded.
constexpr std::size_t kMostSteps = 2000, kStepsShown = 12, kUnfolded = 20;

// Adds a row of quantiles; "-" if there are no times.
ReportRow& add_quantiles(ReportTable& table, std::string name, const ForecastQuantiles& q) {
  ReportRow& row = table.row({std::move(name)});
  for (const double ms : {q.mean_ms, q.p50_ms, q.p90_ms, q.p99_ms, q.max_ms})
    row.cell(q.n > 0 ? table_number(ms, 3) : "-");
  return row;
}

// The name of a part in sentences.
std::string_view part_name(std::string_view part) {
  if (part == "gpu") return "GPU";
  if (part == "pcie") return "PCIe";
  if (part == "other_rank") return "waiting for another rank";
  return part;
}

// A picture of measured and simulated step times; steps that are left out are grey.
ReportFigure steps_figure(const ForecastSeries& series) {
  ScatterChart chart{.points = {}, .x_title = "step", .y_title = "ms, longest rank", .legend = {}};
  const auto add = [&](const ForecastSeriesStep& step, double ms, const char* colour, const char* what) {
    chart.points.push_back({.x = static_cast<double>(step.step),
                            .y = ms,
                            .colour = colour,
                            .name = fmt::format("step {}: {} {} ms{}{}", step.step, what, ms_text(ms),
                                                step.left_out.empty() ? "" : "; left out: ", step.left_out)});
  };
  bool measured = false, left_out = false;
  for (std::size_t i = 0; i < std::min(kMostSteps, series.steps.size()); ++i) {
    const ForecastSeriesStep& step = series.steps[i];
    const bool counts = step.left_out.empty();
    left_out = left_out || !counts;
    measured = measured || step.measured_ms > 0;
    if (step.measured_ms > 0) add(step, step.measured_ms, counts ? "c-warm" : "c-faint", "measured");
    add(step, step.step_time_ms, counts ? "c-accent" : "c-faint", "simulated");
  }
  chart.legend.push_back({"c-accent", "simulated"});
  if (measured) chart.legend.push_back({"c-warm", "measured"});
  if (left_out) chart.legend.push_back({"c-faint", "left out"});
  return {scatter_chart(chart), series.steps.size() > kMostSteps
                                    ? fmt::format("The first {} of {} steps.", table_count(kMostSteps),
                                                  table_count(series.steps.size()))
                                    : ""};
}

// The statistics of the steps: over all ranks, then by rank, with the differences in GPU time due to data and
// to hardware.
ReportTable series_table(const ForecastSeries& series) {
  ReportTable table{
      "ms< | mean | p50 | p90 | p99 | largest | host | GPU | GPU: more\nby data | more by\nhardware"};
  if (series.measured.n > 0) add_quantiles(table, "measured, longest rank", series.measured);
  add_quantiles(table, "simulated, longest rank", series.step);
  for (const ForecastSeriesRank& rank : series.ranks) {
    const std::string number = rank.rank ? fmt::format("{}", *rank.rank) : "-";
    ReportRow& row =
        add_quantiles(table, "  rank " + number, rank.step).numbers({rank.host_ms, rank.gpu_ms}, 3);
    if (series.ranks.size() < 2) continue;
    for (const double ms : {rank.data_skew_ms, rank.hardware_ms}) row.cell(table_signed(ms, 3));
  }
  return table;
}

// One row per recorded step.
ReportTable steps_table(const ForecastSeries& series) {
  ReportTable table{"step< | measured ms | simulated ms | error %@ | <"};
  for (const ForecastSeriesStep& step : series.steps) {
    const bool known = step.measured_ms > 0;
    table.row({fmt::format("{}", step.step), known ? table_number(step.measured_ms, 3) : "-",
               table_number(step.step_time_ms, 3),
               known ? table_signed(100 * (step.step_time_ms / step.measured_ms - 1), 3) : "-",
               step.left_out.empty() ? "" : "left out"});
  }
  return table;
}

// A line such as "spread of the ranks 0.12 ms (standard deviation): GPU 70 %, host 30 %". Nothing if all
// shares are below 0.5 %.
void add_shares(ReportSection& section, const ForecastSeries& series, std::string_view of,
                double deviation_ms, double ForecastSpreadShare::*share) {
  std::vector<std::pair<double, std::string_view>> parts;
  for (const ForecastSpreadShare& part : series.spread) parts.emplace_back(part.*share, part.what);
  std::ranges::stable_sort(parts, [](const auto& a, const auto& b) { return a.first > b.first; });
  std::string line;
  for (const auto& [value, what] : parts) {
    if (value < 0.005 && value > -0.005) continue;
    line += fmt::format("{}{} {:.0f} %", line.empty() ? "" : ", ", part_name(what), 100 * value);
  }
  if (line.empty()) return;
  section.add(ReportText{
      fmt::format("spread {} {} ms (standard deviation): {}", of, table_number(deviation_ms, 3), line)});
}

// The section on recorded steps. Many steps go into a folded section of their own.
void add_series(ReportDocument& document, const ForecastSeries& series, bool verbose) {
  const auto counted = static_cast<std::uint64_t>(std::ranges::count_if(
      series.steps, [](const ForecastSeriesStep& step) { return step.left_out.empty(); }));
  ReportSection& section = document.add(
      fmt::format("Step by step: {} of {} recorded steps are included", counted, series.steps.size()));
  for (const ForecastSeriesStep& step : series.steps)
    if (!step.left_out.empty())
      section.add(ReportText{fmt::format("step {} is left out: {}", step.step, step.left_out)});
  if (document.has_page() && series.steps.size() > 1) section.add(steps_figure(series));
  section.add(series_table(series));
  // With fewer than 100 values, the nearest-rank p99 is the maximum.
  if (counted > 1 && counted < 100)
    section.add(ReportText{fmt::format("With {} steps, p99 is the largest one.", counted)});
  if (counted > 1)
    add_shares(section, series, "of a rank over the steps", series.deviation_over_steps_ms,
               &ForecastSpreadShare::over_steps);
  if (series.ranks.size() > 1)
    add_shares(section, series, "of the ranks", series.deviation_over_ranks_ms,
               &ForecastSpreadShare::over_ranks);
  const Shown all_steps = verbose || series.steps.size() <= kStepsShown ? Shown::everywhere : Shown::page;
  const bool folded = series.steps.size() > kUnfolded;
  if (series.steps.size() > 1 && !folded) section.add(steps_table(series), all_steps);
  if (!folded) return;
  ReportSection& steps = document.add("Recorded steps", {steps_table(series)});
  steps.folded = true;
  steps.shown = all_steps;
  steps.opening.emplace();
}

// A bar that shows how long 50, 90 and 99 of 100 scenarios take at most.
void add_bar(BarChart& chart, std::string label, const ForecastQuantiles& q) {
  if (q.n == 0) return;
  chart.bars.push_back({.label = std::move(label),
                        .parts = {{"c-accent", "half of the scenarios", q.p50_ms},
                                  {"c-warm", "on to p90", q.p90_ms - q.p50_ms},
                                  {"c-idle-other-rank", "on to p99", q.p99_ms - q.p90_ms}},
                        .note = fmt::format("p99 {} ms", ms_text(q.p99_ms))});
}

// The causes of slow scenarios.
ReportTable tail_table(const ForecastScenarios& scenarios) {
  ReportTable table{"cause<"};
  for (const ForecastTailCause& cause : scenarios.tail) {
    const std::string what =
        cause.what == "none" ? "no varied time is on the critical path" : std::string{part_name(cause.what)};
    add_row(table, {cause.rank ? fmt::format("{} of rank {}", what, *cause.rank) : what}, cause);
  }
  return table;
}

// The section on straggler scenarios.
void add_scenarios(ReportDocument& document, const ForecastScenarios& scenarios,
                   const std::vector<ForecastClass>& classes) {
  BarChart chart{.bars = {}, .unit = "ms", .decimals = kByLength};
  ReportTable table{"ms< | mean | p50 | p90 | p99 | largest"};
  add_quantiles(table, "longest rank", scenarios.step);
  add_bar(chart, "longest rank", scenarios.step);
  for (std::size_t c = 0; c < scenarios.ranks.size() && c < classes.size(); ++c) {
    add_quantiles(table, "  " + classes[c].name, scenarios.ranks[c]);
    add_bar(chart, classes[c].name, scenarios.ranks[c]);
  }
  ReportSection& section =
      document.add(fmt::format("Straggler scenarios: {} drawn from {} (seed {})",
                               table_count(scenarios.step.n), scenarios.drawn_from, scenarios.seed));
  section.is_asked = true;
  if (document.has_page()) section.add(ReportFigure{bar_chart(chart), ""});
  section.add(std::move(table));
  section.add(
      ReportText{fmt::format("Causes of the slowest {} ({} ms and more):", table_count(scenarios.n_tail),
                             table_number(scenarios.tail_from_ms, 3))});
  section.add(tail_table(scenarios));
}

}  // namespace

void add_distributions(ReportDocument& document, const Forecast& forecast, bool verbose) {
  if (forecast.series) add_series(document, *forecast.series, verbose);
  if (forecast.scenarios) add_scenarios(document, *forecast.scenarios, forecast.classes);
}

namespace {

// The section on shared links: load of each level of switches, and slowdown of each kind of groups.
void add_network(ReportDocument& document, const ForecastNetwork& network) {
  std::string text = "Network:";
  for (const ForecastTier& t : network.tiers) {
    text += fmt::format("\n  {} nodes below a switch, {:g}:1 oversubscribed: uplink load {:.0f} %",
                        table_count(t.nodes), t.oversubscription, 100 * t.load);
  }
  if (network.background_load > 0)
    text += fmt::format("\n  other jobs load every uplink by {:.0f} %", 100 * network.background_load);
  ReportSection& section = document.add("Shared links", {ReportText{text, 0}});
  section.opening = "\n";
  ReportTable table{"transfers between nodes< | slowdown alone | with own groups"};
  for (const ForecastSharedKind& kind : network.kinds)
    table.row({kind.group, fmt::format("{:.2f}", kind.alone), fmt::format("{:.2f}", kind.slowdown)});
  if (!table.rows.empty()) section.add(std::move(table));
  if (network.kinds.empty()) return;
  section.add(ReportText{fmt::format("  {} iteration{} of the schedule, residual {:.2g} %", network.sweeps,
                                     network.sweeps == 1 ? "" : "s", 100 * network.residual),
                         0});
}

// The section on pools of GPUs.
void add_pools(ReportDocument& document, const std::vector<ForecastPool>& pools) {
  ReportTable table{"pool< | has< | layers of a stage< | micro-batches | GiB | of | busy %"};
  for (const ForecastPool& p : pools) {
    std::vector<std::string> layers;
    // Equal numbers of layers are joined: "3 x 10, 11".
    for (std::size_t i = 0, n = 0; i < p.layers.size(); i += n) {
      for (n = 1; i + n < p.layers.size() && p.layers[i + n] == p.layers[i];) ++n;
      layers.push_back(n == 1 ? fmt::format("{}", p.layers[i]) : fmt::format("{} x {}", n, p.layers[i]));
    }
    table.row({fmt::format("{} x {}{}", p.n_gpus, p.platform, p.zone.empty() ? "" : " in " + p.zone), p.holds,
               fmt::format("{}", fmt::join(layers, ", ")),
               p.micro_batches ? fmt::format("{}", *p.micro_batches) : std::string{},
               fmt::format("{:.1f}", p.peak_memory_GiB), fmt::format("{:.1f}", p.available_GiB),
               fmt::format("{:.1f}", 100 * p.busy_share)});
  }
  ReportSection& section = document.add("Pools of GPUs", {std::move(table)});
  section.opening = "\n";
}

}  // namespace

void add_pool_layouts(ReportDocument& document, const std::vector<ForecastPoolLayout>& layouts) {
  if (layouts.empty()) return;
  ReportTable table{
      "#< | layout< | pools have< | layers, or micro-batches of a replica< | step ms | p10 ms | p90 ms | "
      "tokens/s | headroom GiB"};
  for (const ForecastPoolLayout& l : layouts)
    table.row({fmt::format("{}", table.rows.size() + 1), l.layout, l.over, l.shares,
               table_number(l.step_time_ms, 1), table_number(l.step_time_p10_ms, 1),
               table_number(l.step_time_p90_ms, 1), table_number(l.tokens_per_s, 0),
               fmt::format("{:.1f}", l.spare_GiB)});
  ReportSection& section = document.add("Layouts tried", {std::move(table)});
  section.opening = "Layouts over the pools: those that fit first, by step time\n\n";
  section.add(ReportText{fmt::format("Megatron-LM: {}\n", layouts.front().flags), 0});
}

void add_cluster_sections(ReportDocument& document, const Forecast& forecast) {
  if (forecast.network) add_network(document, *forecast.network);
  if (!forecast.pools.empty()) add_pools(document, forecast.pools);
}

}  // namespace stepcast::detail
