// Bar charts and waterfalls, and the drawing functions that all charts share. Coordinates are in units of the
// SVG's viewBox, which is 960 wide; browsers scale it to the width of the page.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <string>

#include <fmt/format.h>

#include "stepcast/report/cell_text.h"
#include "stepcast/report/html/charts.h"

namespace stepcast {

namespace {

// The layout of bar charts: where bars begin, where they end at least, and the heights of rows.
constexpr double kBarsWidth = 960, kBarFrom = 150, kLeastBarTo = 640, kRowHeight = 26, kBarHeight = 18,
                 kBarsTop = 4, kBarsAxis = 22;

constexpr double kCharacter = 6.8;  // mean width of a character

// The text cut to what fits into `width`, by the mean width of characters.
std::string fitting(const std::string& text, double width) {
  return shorten(text, static_cast<std::size_t>(std::max(3.0, width / kCharacter)));
}

// Where the longest bar ends, so that the longest note behind a bar has room.
double bars_end(const BarChart& chart) {
  std::size_t longest = 4;
  for (const Bar& bar : chart.bars) longest = std::max(longest, bar.note.size());
  return std::max(kLeastBarTo, kBarsWidth - 14 - kCharacter * static_cast<double>(longest));
}

// The length of a bar: the sum of its positive parts.
double total(const Bar& bar) {
  double sum = 0;
  for (const BarPart& part : bar.parts) sum += std::max(0.0, part.value);
  return sum;
}

// Draws the parts of one bar, each with a tooltip, and with its value if there is room for it.
void draw_parts(Markup& svg, const BarChart& chart, const Bar& bar, double y, double scale, int decimals) {
  constexpr double kRoomForText = 44, kPadding = 8;
  const double sum = total(bar);
  double at = 0;
  for (const BarPart& part : bar.parts) {
    if (part.value <= 0) continue;
    const double x = kBarFrom + at * scale, width = part.value * scale;
    at += part.value;
    draw_rect(svg, part.colour, x, y, width, kBarHeight,
              fmt::format("{}: {}: {} {} ({:.1f} %)", bar.label, part.name,
                          table_number(part.value, decimals), chart.unit, 100 * part.value / sum));
    std::string value = table_number(part.value, decimals);
    const double needed = std::max(kRoomForText, kPadding + kCharacter * static_cast<double>(value.size()));
    if (!chart.with_values || width < needed) continue;
    draw_text(svg, "in " + part.colour, x + width / 2, y + kBarHeight - 5, value);
  }
}

// Draws grid lines with round numbers, and the unit.
void draw_axis(Markup& svg, const BarChart& chart, double most, double scale, double bottom) {
  constexpr int kTicks = 6;
  for (const double tick : round_ticks(0, most, kTicks)) {
    const double x = kBarFrom + tick * scale;
    draw_line(svg, "grid", x, x, kBarsTop, bottom);
    draw_text(svg, "tick", x, bottom + 15, tick_text(tick));
  }
  draw_text(svg, "unit", 0, bottom + 15, chart.unit);
}

// Bars are grouped if there are more than this number. Parts of a group differ by less than this fraction of
// the longest bar, which is less than a pixel. Of bars that differ, not more than kMostBars are drawn.
constexpr std::size_t kManyBars = 32, kMostBars = 256;
constexpr double kSame = 1e-3;

bool look_the_same(const Bar& a, const Bar& b, double tolerance) {
  const auto near = [&](double x, double y) { return std::abs(x - y) <= tolerance; };
  return near(a.limit.value_or(0), b.limit.value_or(0)) &&
         std::ranges::equal(a.parts, b.parts, [&](const BarPart& x, const BarPart& y) {
           return x.colour == y.colour && x.name == y.name && near(x.value, y.value);
         });
}

// "ranks 0-31, 40" for "rank 0" and so on; "a and 3 more" for other labels.
std::string group_label(const std::vector<const Bar*>& group) {
  const std::string& first = group.front()->label;
  const std::string prefix = first.substr(0, first.find_last_not_of("0123456789") + 1);
  const std::string names = prefix.ends_with(' ') ? prefix.substr(0, prefix.size() - 1) + "s " : prefix;
  std::string text;
  long long from = 0, last = 0;
  for (const Bar* bar : group) {
    const char* const end = bar->label.data() + bar->label.size();
    long long number = 0;
    if (!bar->label.starts_with(prefix) ||
        std::from_chars(bar->label.data() + prefix.size(), end, number).ptr != end ||
        prefix.size() == bar->label.size())
      return fmt::format("{} and {} more", first, group.size() - 1);
    if (bar == group.front()) {
      text = fmt::format("{}{}", names, number);
      from = number;
    } else if (number != last + 1) {
      if (last > from) text += fmt::format("-{}", last);
      text += fmt::format(", {}", number);
      from = number;
    }
    last = number;
  }
  return last > from ? text + fmt::format("-{}", last) : text;
}

// One bar for all that look the same, in the order of their first ones. The same bars if they are few or mostly
// different.
std::vector<Bar> grouped(const std::vector<Bar>& bars, double tolerance) {
  if (bars.size() <= kManyBars) return bars;
  std::vector<std::vector<const Bar*>> groups;
  for (const Bar& bar : bars) {
    const auto same = std::ranges::find_if(
        groups, [&](const auto& group) { return look_the_same(*group.front(), bar, tolerance); });
    if (same != groups.end())
      same->push_back(&bar);
    else if (groups.size() == bars.size() / 2)
      return bars;
    else
      groups.push_back({&bar});
  }
  std::vector<Bar> out;
  for (const auto& group : groups) {
    Bar& one = out.emplace_back(*group.front());
    if (group.size() == 1) continue;
    one.label = group_label(group);
    one.note += fmt::format("{}{} equal", one.note.empty() ? "" : ", ", group.size());
  }
  return out;
}

// Draws the bars of a chart whose longest one has the length `most`.
void draw_bars(Markup& out, const BarChart& chart, double most) {
  const int decimals = chart.decimals != kByLength ? chart.decimals : most >= 100 ? 1 : 2;
  const double scale = (bars_end(chart) - kBarFrom) / most;
  const std::size_t n_bars = std::min(kMostBars, chart.bars.size());
  const double bottom = kBarsTop + kRowHeight * static_cast<double>(n_bars);
  open_plot(out, kBarsWidth, bottom + kBarsAxis);
  draw_axis(out, chart, most, scale, bottom);
  for (std::size_t i = 0; i < n_bars; ++i) {
    const Bar& bar = chart.bars[i];
    const double y = kBarsTop + kRowHeight * static_cast<double>(i) + (kRowHeight - kBarHeight) / 2;
    draw_text(out, "row", kBarFrom - 10, y + kBarHeight - 5, fitting(bar.label, kBarFrom - 14));
    draw_parts(out, chart, bar, y, scale, decimals);
    const double end = kBarFrom + std::max(total(bar), bar.limit.value_or(0)) * scale;
    draw_text(out, "note", end + 8, y + kBarHeight - 5, fitting(bar.note, kBarsWidth - end - 8));
    if (bar.limit) {
      const double x = kBarFrom + *bar.limit * scale;
      out.open("line", {{"class", "limit"}, {"x1", x}, {"x2", x}, {"y1", y - 3}, {"y2", y + kBarHeight + 3}});
      out.element("title", {},
                  fmt::format("{}: {} {}", chart.limit_name, table_number(*bar.limit, decimals), chart.unit));
      out.close();
    }
  }
  out.close().close();
  if (n_bars < chart.bars.size())
    out.element("p", {{"class", "small"}}, fmt::format("{} of {} shown", n_bars, chart.bars.size()));
}

// The layout of waterfalls.
constexpr double kWaterfallWidth = 960, kWaterfallFrom = 240, kWaterfallTo = 850, kRow = 24, kBar = 16,
                 kWaterfallTop = 4;
constexpr std::size_t kLabel = 32;

// One bar of a waterfall.
struct Row {
  std::string name, colour;
  double begin = 0, end = 0;  // the values at which the bar begins and ends
  std::string note;
};

// The bars: the first value, one per change, the remaining change, the last value.
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

std::string part_colour(std::string_view key) {
  // Keys become names of CSS classes: letters and digits, with "-" for blanks and underscores.
  const std::size_t colon = key.find(": ");
  const std::string_view kind = key.substr(0, colon);
  std::string what;
  if (colon != std::string_view::npos) {
    for (const char c : key.substr(colon + 2)) {
      if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')) what += c;
      if (c == '_' || c == ' ') what += '-';
    }
  }
  if (kind == "computation") return "c-compute c-" + what;
  if (kind == "exposed communication") return "c-comm c-group-" + what;
  if (kind == "idle") return "c-idle c-idle-" + what;
  if (kind == "exposed copies") return "c-copies";
  return "c-other";
}

void open_plot(Markup& out, double width, double height) {
  out.open("div", {{"class", "plot"}});
  out.open("svg",
           {{"viewBox", fmt::format("0 0 {} {}", coordinate(width), coordinate(height))}, {"role", "group"}});
}

void draw_line(Markup& svg, std::string_view kind, double x1, double x2, double y1, double y2) {
  svg.leaf("line", {{"class", kind}, {"x1", x1}, {"x2", x2}, {"y1", y1}, {"y2", y2}});
}

void draw_text(Markup& svg, std::string_view kind, double x, double y, std::string_view text) {
  svg.element("text", {{"class", kind}, {"x", x}, {"y", y}}, text);
}

void draw_dot(Markup& svg, std::string_view colour, double x, double y, std::string_view title) {
  svg.open("circle", {{"class", fmt::format("dot {}", colour)}, {"cx", x}, {"cy", y}, {"r", 5}});
  svg.element("title", {}, title).close();
}

void draw_rect(Markup& svg, std::string_view kind, double x, double y, double width, double height,
               std::string_view title) {
  const Markup::Attributes place{{"class", kind}, {"x", x}, {"y", y}, {"width", width}, {"height", height}};
  if (title.empty())
    svg.leaf("rect", place);
  else
    svg.open("rect", place).element("title", {}, title).close();
}

std::string tick_text(double tick) {
  constexpr double kWhole = 1000;
  return std::abs(tick) >= kWhole ? table_number(tick, 0) : fmt::format("{:g}", tick);
}

std::vector<double> round_ticks(double low, double high, int count) {
  std::vector<double> ticks;
  if (!std::isfinite(low) || !std::isfinite(high) || high <= low || count < 1) return ticks;
  const double rough = (high - low) / count;
  // Round numbers are 1, 2 or 5 times a power of ten.
  const double power = std::pow(10.0, std::floor(std::log10(rough)));
  double step = power;
  for (const double factor : {2.0, 5.0, 10.0})
    if (step < rough) step = factor * power;
  // More ticks than this would come from rounding errors of nearly equal limits.
  if (!(step > 0) || (high - low) / step > 1000) return ticks;
  const auto first = static_cast<long long>(std::ceil(low / step - 1e-9));
  const auto last = static_cast<long long>(std::floor(high / step + 1e-9));
  for (long long i = first; i <= last; ++i) ticks.push_back(static_cast<double>(i) * step);
  return ticks;
}

Markup legend(const std::vector<LegendEntry>& entries) {
  Markup list;
  list.open("ul", {{"class", "legend"}});
  // Texts that occur in several bars are listed once.
  std::vector<std::string> seen;
  for (const LegendEntry& entry : entries) {
    if (std::ranges::find(seen, entry.text) != seen.end()) continue;
    seen.push_back(entry.text);
    list.open("li");
    list.element("i", {{"class", entry.colour}}, "");
    list.text(entry.text).close();
  }
  list.close();
  return list;
}

Markup bar_chart(const BarChart& chart) {
  double most = 0;
  std::vector<LegendEntry> entries;
  for (const Bar& bar : chart.bars) {
    most = std::max({most, total(bar), bar.limit.value_or(0)});
    for (const BarPart& part : bar.parts)
      if (part.value > 0) entries.push_back({part.colour, part.name});
  }
  Markup out;
  if (!(most > 0) || !std::isfinite(most)) return out;
  BarChart groups = chart;
  groups.bars = grouped(chart.bars, kSame * most);
  if (groups.bars.size() < chart.bars.size()) {
    draw_bars(out, groups, most);
    out.open("details").element("summary", {}, fmt::format("All {} bars", chart.bars.size()));
    draw_bars(out, chart, most);
    out.close();
  } else {
    draw_bars(out, chart, most);
  }
  if (chart.with_legend) {
    if (!chart.limit_name.empty()) entries.push_back({"c-limit", chart.limit_name});
    out.append(legend(entries));
  }
  return out;
}

Markup waterfall_chart(const WaterfallChart& chart) {
  const std::vector<Row> rows = rows_of(chart);
  // If the changes are large, the axis begins at zero. Otherwise it begins close to the values, so that the
  // changes are visible; the values are then points, and a line below the chart says so.
  double low = std::min(chart.from, chart.to), high = std::max(chart.from, chart.to);
  for (const Row& row : rows) {
    if (row.colour != "c-accent") low = std::min({low, row.begin, row.end});
    high = std::max({high, row.begin, row.end});
  }
  Markup out;
  if (!std::isfinite(low) || !std::isfinite(high) || high <= 0) return out;
  constexpr double kLarge = 0.35, kRoom = 0.25;
  const double begin = chart.from_zero || high - low > kLarge * high
                           ? std::min(0.0, low)
                           : std::max(0.0, low - kRoom * (high - low) - 0.01 * high);
  const double scale = (kWaterfallTo - kWaterfallFrom) / (high - begin);
  const auto x_of = [&](double value) { return kWaterfallFrom + (std::max(value, begin) - begin) * scale; };
  const double bottom = kWaterfallTop + kRow * static_cast<double>(rows.size());
  open_plot(out, kWaterfallWidth, bottom + 22);
  constexpr int kTicks = 6;
  for (const double tick : round_ticks(begin, high, kTicks)) {
    draw_line(out, "grid", x_of(tick), x_of(tick), kWaterfallTop, bottom);
    draw_text(out, "tick", x_of(tick), bottom + 15, tick_text(tick));
  }
  draw_text(out, "unit", 0, bottom + 15, chart.unit);
  for (std::size_t r = 0; r < rows.size(); ++r) {
    const Row& row = rows[r];
    const double y = kWaterfallTop + kRow * static_cast<double>(r) + (kRow - kBar) / 2;
    const double left = x_of(std::min(row.begin, row.end)), right = x_of(std::max(row.begin, row.end));
    draw_text(out, "row", kWaterfallFrom - 10, y + kBar - 4, shorten(row.name, kLabel));
    const std::string title = fmt::format("{}: {} {}", row.name, row.note, chart.unit);
    // A bar on an axis without zero would have a wrong length, so the two values are points there.
    if (row.colour == "c-accent" && begin > 0)
      draw_dot(out, row.colour, right, y + kBar / 2, title);
    else
      draw_rect(out, row.colour, left, y, std::max(1.0, right - left), kBar, title);
    draw_text(out, "note", right + 8, y + kBar - 4, row.note);
    if (r + 1 < rows.size()) {
      draw_line(out, "whisker", x_of(row.end), x_of(row.end), y + kBar, y + kRow);
    }
  }
  out.close().close();
  out.append(legend({{"c-warm", "longer"}, {"c-embedding", "shorter"}}));
  if (begin > 0) out.element("p", {{"class", "small"}}, "The axis does not start at zero.");
  return out;
}

}  // namespace stepcast
