// Scatter plots and matrices.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "stepcast/report/cell_text.h"
#include "stepcast/report/html/charts.h"

namespace stepcast {
namespace {

// The layout of scatter plots: the edges of the plot inside the picture.
constexpr double kPlaneWidth = 960, kHeight = 380, kLeft = 70, kRight = 930, kPlaneTop = 18, kBottom = 330;

// A linear map from values to coordinates.
struct Scale {
  double low = 0, high = 1, from = 0, to = 1;
  [[nodiscard]] double at(double value) const { return from + (value - low) / (high - low) * (to - from); }
};

// The scale for values from `low` to `high`, with some room at both ends.
Scale scale_over(double low, double high, double from, double to) {
  constexpr double kMargin = 0.06;
  const double room = high > low ? kMargin * (high - low) : std::max(1e-9, std::abs(high)) * kMargin;
  // If the smallest value is near zero, the axis begins at zero.
  const double begin = low >= 0 && low < 0.3 * high ? 0 : low - room;
  return {begin, high + room, from, to};
}

// Draws the grid, the titles of the axes and the limits.
void draw_frame(Markup& svg, const ScatterChart& chart, const Scale& x, const Scale& y) {
  constexpr int kTicksX = 8, kTicksY = 6;
  for (const double tick : round_ticks(x.low, x.high, kTicksX)) {
    draw_line(svg, "grid", x.at(tick), x.at(tick), kPlaneTop, kBottom);
    draw_text(svg, "tick", x.at(tick), kBottom + 17, tick_text(tick));
  }
  for (const double tick : round_ticks(y.low, y.high, kTicksY)) {
    draw_line(svg, "grid", kLeft, kRight, y.at(tick), y.at(tick));
    draw_text(svg, "row", kLeft - 8, y.at(tick) + 4, tick_text(tick));
  }
  draw_text(svg, "axis", (kLeft + kRight) / 2, kBottom + 40, chart.x_title);
  draw_text(svg, "unit", 4, 11, chart.y_title);
  if (chart.y_limit) {
    const double at = y.at(*chart.y_limit);
    draw_line(svg, "limit", kLeft, kRight, at, at);
    draw_text(svg, "row", kRight, at - 5, chart.y_limit_name);
  }
  if (chart.x_limit) {
    const double at = x.at(*chart.x_limit);
    draw_line(svg, "limit", at, at, kPlaneTop, kBottom);
    draw_text(svg, "note", at + 5, kPlaneTop + 10, chart.x_limit_name);
  }
}

// Extends an interval to a value, unless the value is not finite.
void widen(double& low, double& high, double value) {
  if (!std::isfinite(value)) return;
  low = std::min(low, value);
  high = std::max(high, value);
}

}  // namespace

Markup scatter_chart(const ScatterChart& chart) {
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  double x_low = kInfinite, x_high = -kInfinite, y_low = kInfinite, y_high = -kInfinite;
  for (const ScatterPoint& p : chart.points) {
    if (!std::isfinite(p.x) || !std::isfinite(p.y)) continue;
    widen(x_low, x_high, p.x);
    widen(y_low, y_high, p.y);
    // Intervals are drawn only for points with a label; these must be visible.
    if (!p.label.empty() && p.x_low) widen(x_low, x_high, *p.x_low);
    if (!p.label.empty() && p.x_high) widen(x_low, x_high, *p.x_high);
  }
  Markup out;
  if (x_low > x_high) return out;
  if (chart.y_limit) widen(y_low, y_high, *chart.y_limit);
  if (chart.x_limit) widen(x_low, x_high, *chart.x_limit);
  const Scale x = scale_over(x_low, x_high, kLeft, kRight), y = scale_over(y_low, y_high, kBottom, kPlaneTop);
  open_plot(out, kPlaneWidth, kHeight);
  draw_frame(out, chart, x, y);
  for (const ScatterPoint& p : chart.points) {
    if (!std::isfinite(p.x) || !std::isfinite(p.y)) continue;
    if (!p.label.empty() && p.x_low && p.x_high) {
      draw_line(out, "whisker", x.at(std::max(*p.x_low, x.low)), x.at(std::min(*p.x_high, x.high)), y.at(p.y),
                y.at(p.y));
    }
    draw_dot(out, p.colour, x.at(p.x), y.at(p.y), p.name);
  }
  // Labels come last, on top of the points, and on the side with more room.
  for (const ScatterPoint& p : chart.points) {
    if (p.label.empty() || !std::isfinite(p.x) || !std::isfinite(p.y)) continue;
    const bool left = x.at(p.x) > (kLeft + kRight) / 2;
    draw_text(out, left ? "row strong" : "note strong", x.at(p.x) + (left ? -9 : 9), y.at(p.y) - 8, p.label);
  }
  out.close().close();
  if (!chart.legend.empty()) out.append(legend(chart.legend));
  return out;
}

Markup matrix_chart(const MatrixChart& chart) {
  // Cells have one of this number of shades; beyond these limits, values and labels are left out.
  constexpr int kShades = 6;
  constexpr double kCellsFrom = 110, kHead = 40, kRoom = 800;
  constexpr std::size_t kMostWithText = 12, kMostLabels = 32;
  Markup out;
  if (chart.rows.empty() || chart.columns.empty()) return out;
  const auto n_columns = static_cast<double>(chart.columns.size()),
             n_rows = static_cast<double>(chart.rows.size());
  const double width = std::min(64.0, kRoom / n_columns);
  const double height = std::clamp(width * 0.5, 5.0, 26.0);
  double most = 0;
  for (const MatrixCell& cell : chart.cells) most = std::max(most, cell.value);
  const double bottom = kHead + height * n_rows;
  open_plot(out, kPlaneWidth, bottom + 10);
  draw_text(out, "unit", kCellsFrom, 12, chart.column_title);
  draw_text(out, "unit", 0, kHead - 6, chart.row_title);
  // Every n-th label is drawn if there are many.
  const auto every = [](std::size_t n) { return (n + kMostLabels - 1) / kMostLabels; };
  for (std::size_t c = 0; c < chart.columns.size(); c += every(chart.columns.size())) {
    draw_text(out, "tick", kCellsFrom + width * (static_cast<double>(c) + 0.5), kHead - 6,
              shorten(chart.columns[c], 8));
  }
  for (std::size_t r = 0; r < chart.rows.size();
       r += std::max<std::size_t>(1, height < 10 ? every(chart.rows.size()) : 1)) {
    draw_text(out, "row", kCellsFrom - 8, kHead + height * (static_cast<double>(r) + 0.5) + 4,
              shorten(chart.rows[r], 15));
  }
  draw_rect(out, "field", kCellsFrom, kHead, width * n_columns, height * n_rows);
  for (const MatrixCell& cell : chart.cells) {
    if (!(cell.value > 0) || cell.row >= chart.rows.size() || cell.column >= chart.columns.size()) continue;
    // Shades grow with the square root, so that small values remain visible next to large ones.
    const int shade =
        std::clamp(static_cast<int>(std::ceil(kShades * std::sqrt(cell.value / most))), 1, kShades);
    const double x = kCellsFrom + width * static_cast<double>(cell.column),
                 y = kHead + height * static_cast<double>(cell.row);
    draw_rect(out, fmt::format("shade s{}", shade), x + 0.5, y + 0.5, std::max(1.0, width - 1),
              std::max(1.0, height - 1),
              fmt::format("{} - {}: {} {}", chart.rows[cell.row], chart.columns[cell.column],
                          table_number(cell.value, chart.decimals), chart.unit));
    if (chart.columns.size() > kMostWithText) continue;
    draw_text(out, shade > kShades - 2 ? "in light" : "in", x + width / 2, y + height / 2 + 4,
              table_number(cell.value, chart.decimals));
  }
  out.close().close();
  return out;
}

}  // namespace stepcast
