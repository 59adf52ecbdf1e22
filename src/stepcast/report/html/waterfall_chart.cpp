#include <algorithm>
#include <cmath>
#include <string>

#include <fmt/format.h>

#include "stepcast/report/cell_text.h"
#include "stepcast/report/html/charts.h"

namespace stepcast {
namespace {

constexpr double kWaterfallWidth = 960, kWaterfallFrom = 240, kWaterfallTo = 850, kRow = 24, kBar = 16,
                 kWaterfallTop = 4;
constexpr std::size_t kLabel = 32;

struct Row {
  std::string name, colour;
  double begin = 0, end = 0;  // of the bar
  std::string note;
};

std::vector<Row> rows_of(const WaterfallChart& chart) {
  constexpr double kNothing = 1e-9;
  std::vector<Row> rows{
      {chart.from_name, "c-accent", 0, chart.from, table_number(chart.from, chart.decimals)}};
  double at = chart.from;
  const auto add = [&](const std::string& name, double change) {
    if (std::abs(change) <= kNothing) return;
    rows.push_back(
        {name, change > 0 ? "c-warm" : "c-embedding", at, at + change, table_signed(change, chart.decimals)});
    at += change;
  };
  for (const WaterfallStep& step : chart.steps) add(step.name, step.change);
  add(chart.rest_name, chart.to - at);
  rows.push_back({chart.to_name, "c-accent", 0, chart.to, table_number(chart.to, chart.decimals)});
  return rows;
}

}  // namespace

Markup waterfall_chart(const WaterfallChart& chart) {
  const std::vector<Row> rows = rows_of(chart);
  // Bars begin at zero where the changes are large; else the axis begins where they are to be seen.
  double low = std::min(chart.from, chart.to), high = std::max(chart.from, chart.to);
  for (const Row& row : rows) {
    if (row.colour != "c-accent") low = std::min({low, row.begin, row.end});
    high = std::max({high, row.begin, row.end});
  }
  Markup out;
  if (!std::isfinite(low) || !std::isfinite(high) || high <= 0) return out;
  constexpr double kLarge = 0.35, kRoom = 0.25;
  const double begin = high - low > kLarge * high ? std::min(0.0, low)
                                                  : std::max(0.0, low - kRoom * (high - low) - 0.01 * high);
  const double scale = (kWaterfallTo - kWaterfallFrom) / (high - begin);
  const auto x_of = [&](double value) { return kWaterfallFrom + (std::max(value, begin) - begin) * scale; };
  const double bottom = kWaterfallTop + kRow * static_cast<double>(rows.size());
  out.open("div", {{"class", "plot"}});
  out.open("svg",
           {{"viewBox", fmt::format("0 0 {} {}", coordinate(kWaterfallWidth), coordinate(bottom + 22))},
            {"role", "img"}});
  constexpr int kTicks = 6;
  for (const double tick : round_ticks(begin, high, kTicks)) {
    out.leaf(
        "line",
        {{"class", "grid"}, {"x1", x_of(tick)}, {"x2", x_of(tick)}, {"y1", kWaterfallTop}, {"y2", bottom}});
    out.element("text", {{"class", "tick"}, {"x", x_of(tick)}, {"y", bottom + 15}}, tick_text(tick));
  }
  out.element("text", {{"class", "unit"}, {"x", 0}, {"y", bottom + 15}}, chart.unit);
  for (std::size_t r = 0; r < rows.size(); ++r) {
    const Row& row = rows[r];
    const double y = kWaterfallTop + kRow * static_cast<double>(r) + (kRow - kBar) / 2;
    const double left = x_of(std::min(row.begin, row.end)), right = x_of(std::max(row.begin, row.end));
    out.element("text", {{"class", "row"}, {"x", kWaterfallFrom - 10}, {"y", y + kBar - 4}},
                shorten(row.name, kLabel));
    out.open("rect", {{"class", row.colour},
                      {"x", left},
                      {"y", y},
                      {"width", std::max(1.0, right - left)},
                      {"height", kBar}});
    out.element("title", {}, fmt::format("{}: {} {}", row.name, row.note, chart.unit)).close();
    out.element("text", {{"class", "note"}, {"x", right + 8}, {"y", y + kBar - 4}}, row.note);
    if (r + 1 < rows.size()) {
      out.leaf("line", {{"class", "whisker"},
                        {"x1", x_of(row.end)},
                        {"x2", x_of(row.end)},
                        {"y1", y + kBar},
                        {"y2", y + kRow}});
    }
  }
  out.close().close();
  out.append(legend({{"c-warm", "longer"}, {"c-embedding", "shorter"}}));
  if (begin > 0) out.element("p", {{"class", "small"}}, "The axis does not begin at zero.");
  return out;
}

}  // namespace stepcast
