#include "stepcast/report/detail/spread_sections.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stepcast/report/detail/document_parts.h"
#include "stepcast/report/html/charts.h"
#include "stepcast/report/spread_text.h"
#include "stepcast/report/text_table.h"

namespace stepcast::detail {
namespace {

constexpr std::size_t kMostSteps = 2000, kMostRanks = 64, kUnfolded = 20;

ReportTable quantile_table(const char* heading) {
  return {{{heading, false}, {"n"}, {"mean ms"}, {"p50"}, {"p90"}, {"p99"}, {"largest"}}, {}};
}

std::vector<ReportCell> quantile_row(std::string name, const ForecastQuantiles& q) {
  std::vector<ReportCell> row{std::move(name), table_count(q.n)};
  for (const double ms : {q.mean_ms, q.p50_ms, q.p90_ms, q.p99_ms, q.max_ms})
    row.emplace_back(q.n > 0 ? ms_text(ms) : "-");
  return row;
}

std::string rank_name(const ForecastSeriesRank& rank) {
  return rank.rank ? fmt::format("rank {}", *rank.rank) : std::string{"a rank"};
}

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
  return {scatter_chart(chart), ""};
}

ReportTable steps_table(const ForecastSeries& series) {
  ReportTable table{{{"step"}, {"measured ms"}, {"simulated ms"}, {"error %"}, {"", false}}, {}};
  for (std::size_t i = 0; i < std::min(kMostSteps, series.steps.size()); ++i) {
    const ForecastSeriesStep& step = series.steps[i];
    const bool known = step.measured_ms > 0;
    table.rows.push_back({fmt::format("{}", step.step), known ? ms_text(step.measured_ms) : "-",
                          ms_text(step.step_time_ms),
                          known ? table_signed(100 * (step.step_time_ms / step.measured_ms - 1), 3) : "-",
                          step.left_out.empty() ? std::string{} : "left out: " + step.left_out});
  }
  return table;
}

void add_series(ReportDocument& document, const ForecastSeries& series) {
  const auto counted = std::count_if(series.steps.begin(), series.steps.end(),
                                     [](const ForecastSeriesStep& step) { return step.left_out.empty(); });
  ReportSection section{"Step by step"};
  section.blocks.emplace_back(ReportText{fmt::format("{} of {} recorded steps count.",
                                                     table_count(static_cast<std::uint64_t>(counted)),
                                                     table_count(series.steps.size()))});
  if (series.steps.size() > 1) section.blocks.emplace_back(steps_figure(series));
  ReportTable quantiles = quantile_table("step");
  if (series.measured.n > 0)
    quantiles.rows.push_back(quantile_row("measured, longest rank", series.measured));
  quantiles.rows.push_back(quantile_row("simulated, longest rank", series.step));
  for (std::size_t r = 0; r < std::min(kMostRanks, series.ranks.size()); ++r)
    quantiles.rows.push_back(quantile_row(rank_name(series.ranks[r]), series.ranks[r].step));
  if (counted > 1 && counted < 100)
    quantiles.caption = fmt::format("p99 of {} steps is the largest.", counted);
  section.blocks.emplace_back(std::move(quantiles));
  if (series.ranks.size() > 1) {
    ReportTable ranks{{{"work of a step, mean", false},
                       {"host ms"},
                       {"GPU ms"},
                       {"GPU: more by data"},
                       {"more by hardware"}},
                      {}};
    for (std::size_t r = 0; r < std::min(kMostRanks, series.ranks.size()); ++r) {
      const ForecastSeriesRank& rank = series.ranks[r];
      ranks.rows.push_back({rank_name(rank), ms_text(rank.host_ms), ms_text(rank.gpu_ms),
                            table_signed(rank.data_skew_ms, 3), table_signed(rank.hardware_ms, 3)});
    }
    ranks.caption =
        "More than the mean rank because its operators have more work, and because the same work takes "
        "longer.";
    section.blocks.emplace_back(std::move(ranks));
  }
  if (counted > 1 && !series.spread.empty()) {
    ReportTable spread{{{"what the spread comes from", false}, {"over steps %"}, {"over ranks %"}}, {}};
    for (const ForecastSpreadShare& part : series.spread) {
      spread.rows.push_back({std::string{spread_part_name(part.what)}, table_number(100 * part.over_steps, 0),
                             series.ranks.size() > 1 ? table_number(100 * part.over_ranks, 0) : "-"});
    }
    spread.caption = fmt::format(
        "Shares of the variance; standard deviation {} ms of a rank over the steps, {} ms of the ranks.",
        ms_text(series.deviation_over_steps_ms), ms_text(series.deviation_over_ranks_ms));
    section.blocks.emplace_back(std::move(spread));
  }
  const bool folded = series.steps.size() > kUnfolded;
  if (!folded && series.steps.size() > 1) section.blocks.emplace_back(steps_table(series));
  document.sections.push_back(std::move(section));
  if (folded) document.sections.push_back({"Recorded steps", {steps_table(series)}, true});
}

// Each bar as far as 50, 90 and 99 of 100 scenarios go.
void add_bar(BarChart& chart, std::string label, const ForecastQuantiles& q) {
  if (q.n == 0) return;
  chart.bars.push_back({.label = std::move(label),
                        .parts = {{"c-accent", "half of the scenarios", q.p50_ms},
                                  {"c-warm", "on to p90", q.p90_ms - q.p50_ms},
                                  {"c-idle-other-rank", "on to p99", q.p99_ms - q.p90_ms}},
                        .note = fmt::format("p99 {} ms", ms_text(q.p99_ms))});
}

void add_scenarios(ReportDocument& document, const ForecastScenarios& scenarios,
                   const std::vector<ForecastClass>& classes) {
  BarChart chart{.bars = {}, .unit = "ms", .decimals = scenarios.step.p50_ms < 100 ? 2 : 1};
  ReportTable quantiles = quantile_table("step");
  quantiles.rows.push_back(quantile_row("longest rank", scenarios.step));
  add_bar(chart, "longest rank", scenarios.step);
  for (std::size_t c = 0; c < std::min({scenarios.ranks.size(), classes.size(), kMostRanks}); ++c) {
    quantiles.rows.push_back(quantile_row(classes[c].name, scenarios.ranks[c]));
    add_bar(chart, classes[c].name, scenarios.ranks[c]);
  }
  ReportSection section{
      "Straggler scenarios",
      {ReportText{fmt::format("{} scenarios, drawn from {} (seed {}).", table_count(scenarios.step.n),
                              scenarios.drawn_from, scenarios.seed)},
       ReportFigure{bar_chart(chart), ""}, std::move(quantiles)}};
  if (!scenarios.tail.empty()) {
    ReportTable tail{
        {{"what makes slow scenarios slow", false}, {"scenarios"}, {"% of slow"}, {"mean excess ms"}}, {}};
    for (const ForecastTailCause& cause : scenarios.tail) {
      const std::string what = cause.what == "none" ? "nothing drawn is on the critical path"
                                                    : std::string{spread_part_name(cause.what)};
      tail.rows.push_back({cause.rank ? fmt::format("{} of rank {}", what, *cause.rank) : what,
                           table_count(cause.scenarios), table_number(100 * cause.share, 1),
                           ms_text(cause.mean_excess_ms)});
    }
    tail.caption = fmt::format("Slow: {} of {} scenarios, from {} ms on.", table_count(scenarios.n_tail),
                               table_count(scenarios.step.n), ms_text(scenarios.tail_from_ms));
    section.blocks.emplace_back(std::move(tail));
  }
  document.sections.push_back(std::move(section));
}

}  // namespace

void add_distributions(ReportDocument& document, const Forecast& forecast) {
  if (forecast.series && !forecast.series->steps.empty()) add_series(document, *forecast.series);
  if (forecast.scenarios && forecast.scenarios->step.n > 0)
    add_scenarios(document, *forecast.scenarios, forecast.classes);
}

}  // namespace stepcast::detail
