#include "stepcast/report/spread_text.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "stepcast/report/text_table.h"

namespace stepcast {
namespace {

constexpr auto kLeft = TextTable::Align::left;
constexpr std::size_t kStepsShown = 12;

std::string rank_text(const std::optional<std::int64_t>& rank) {
  return rank ? fmt::format("{}", *rank) : std::string{"-"};
}

void add_quantiles(std::vector<std::string>& cells, const ForecastQuantiles& q) {
  for (const double ms : {q.mean_ms, q.p50_ms, q.p90_ms, q.p99_ms, q.max_ms})
    cells.push_back(q.n > 0 ? table_number(ms, 3) : "-");
}

}  // namespace

std::string_view spread_part_name(std::string_view part) {
  if (part == "gpu") return "GPU";
  if (part == "pcie") return "PCIe";
  if (part == "other_rank") return "waiting for another rank";
  return part;
}

std::string series_text(const ForecastSeries& series, bool verbose) {
  const auto counted = static_cast<std::uint64_t>(
      std::count_if(series.steps.begin(), series.steps.end(),
                    [](const ForecastSeriesStep& step) { return step.left_out.empty(); }));
  std::string text =
      fmt::format("\nStep by step: {} of {} recorded steps count\n", counted, series.steps.size());
  for (const ForecastSeriesStep& step : series.steps) {
    if (!step.left_out.empty()) text += fmt::format("  step {} is left out: {}\n", step.step, step.left_out);
  }
  TextTable quantiles{{{"ms", kLeft},
                       {"mean"},
                       {"p50"},
                       {"p90"},
                       {"p99"},
                       {"largest"},
                       {"host"},
                       {"GPU"},
                       {"GPU: more\nby data"},
                       {"more by\nhardware"}}};
  const auto row = [&](std::string name, const ForecastQuantiles& q) {
    std::vector<std::string> cells{std::move(name)};
    add_quantiles(cells, q);
    return cells;
  };
  if (series.measured.n > 0) quantiles.row(row("measured, longest rank", series.measured));
  quantiles.row(row("simulated, longest rank", series.step));
  for (const ForecastSeriesRank& rank : series.ranks) {
    std::vector<std::string> cells = row(fmt::format("  rank {}", rank_text(rank.rank)), rank.step);
    cells.push_back(table_number(rank.host_ms, 3));
    cells.push_back(table_number(rank.gpu_ms, 3));
    if (series.ranks.size() > 1) {
      cells.push_back(table_signed(rank.data_skew_ms, 3));
      cells.push_back(table_signed(rank.hardware_ms, 3));
    }
    quantiles.row(std::move(cells));
  }
  text += quantiles.text(2);
  if (counted > 1 && counted < 100)
    text += fmt::format("  p99 of {} steps is the largest of them.\n", counted);
  const auto shares = [&](std::string_view of, double deviation_ms, double ForecastSpreadShare::*share) {
    std::vector<std::pair<double, std::string_view>> parts;
    for (const ForecastSpreadShare& part : series.spread) parts.emplace_back(part.*share, part.what);
    std::stable_sort(parts.begin(), parts.end(),
                     [](const auto& a, const auto& b) { return a.first > b.first; });
    std::string line;
    for (const auto& [value, what] : parts) {
      if (value < 0.005 && value > -0.005) continue;
      line += fmt::format("{}{} {:.0f} %", line.empty() ? "" : ", ", spread_part_name(what), 100 * value);
    }
    if (!line.empty())
      text += fmt::format("  spread {} {} ms (standard deviation): {}\n", of, table_number(deviation_ms, 3),
                          line);
  };
  if (counted > 1)
    shares("of a rank over the steps", series.deviation_over_steps_ms, &ForecastSpreadShare::over_steps);
  if (series.ranks.size() > 1)
    shares("of the ranks", series.deviation_over_ranks_ms, &ForecastSpreadShare::over_ranks);
  if (series.steps.size() > 1 && (verbose || series.steps.size() <= kStepsShown)) {
    TextTable steps{{{"step", kLeft}, {"measured ms"}, {"simulated ms"}, {"", kLeft}}};
    for (const ForecastSeriesStep& step : series.steps) {
      steps.row({fmt::format("{}", step.step), step.measured_ms > 0 ? table_number(step.measured_ms, 3) : "-",
                 table_number(step.step_time_ms, 3), step.left_out.empty() ? "" : "left out"});
    }
    text += steps.text(2);
  }
  return text;
}

std::string scenarios_text(const ForecastScenarios& scenarios, const std::vector<ForecastClass>& ranks) {
  std::string text = fmt::format("\nStraggler scenarios: {} drawn from {} (seed {})\n",
                                 table_count(scenarios.step.n), scenarios.drawn_from, scenarios.seed);
  TextTable quantiles{{{"ms", kLeft}, {"mean"}, {"p50"}, {"p90"}, {"p99"}, {"largest"}}};
  const auto row = [&](std::string name, const ForecastQuantiles& q) {
    std::vector<std::string> cells{std::move(name)};
    add_quantiles(cells, q);
    quantiles.row(std::move(cells));
  };
  row("longest rank", scenarios.step);
  for (std::size_t c = 0; c < scenarios.ranks.size() && c < ranks.size(); ++c)
    row("  " + ranks[c].name, scenarios.ranks[c]);
  text += quantiles.text(2);
  text += fmt::format("  What makes the slowest {} slow ({} ms and more):\n", table_count(scenarios.n_tail),
                      table_number(scenarios.tail_from_ms, 3));
  TextTable causes{{{"cause", kLeft}, {"scenarios"}, {"share\n%"}, {"mean excess on the\ncritical path ms"}}};
  for (const ForecastTailCause& cause : scenarios.tail) {
    const std::string what = cause.what == "none" ? "nothing drawn is on the critical path"
                                                  : std::string{spread_part_name(cause.what)};
    causes.row({cause.rank ? fmt::format("{} of rank {}", what, *cause.rank) : what,
                table_count(cause.scenarios), table_number(100 * cause.share, 1),
                table_number(cause.mean_excess_ms, 3)});
  }
  return text + causes.text(2);
}

}  // namespace stepcast
