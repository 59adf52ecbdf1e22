// Charts in SVG, with their legends: stacked bars, waterfalls, scatter plots, matrices and schedules. They
// can be read without scripts. Every mark has a <title>, which browsers and report.js show as a tooltip.
//
// Colours are CSS classes of report.css, so light and dark pages share one picture.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "stepcast/analyze/step_picture.h"
#include "stepcast/report/html/markup.h"

namespace stepcast {

// The CSS classes for a part of a step, by its key (ForecastClass::parts()): "computation: gemm" is
// "c-compute c-gemm".
[[nodiscard]] std::string part_colour(std::string_view key);

// A colour (CSS class) and its meaning.
struct LegendEntry {
  std::string colour, text;
};
// The list of colours in the order of their first appearance, each text once.
[[nodiscard]] Markup legend(const std::vector<LegendEntry>& entries);

// A part of a stacked bar.
struct BarPart {
  std::string colour;  // CSS class
  std::string name;
  double value = 0;
};
// A stacked bar.
struct Bar {
  std::string label;
  std::vector<BarPart> parts;
  std::string note{};             // text behind the bar, usually its total
  std::optional<double> limit{};  // a mark across the bar, such as a capacity
};
// A value for `decimals`: 1 decimal if the longest bar is at least 100, otherwise 2.
inline constexpr int kByLength = -1;
struct BarChart {
  std::vector<Bar> bars;
  std::string unit;  // unit of the values: "ms"
  std::string limit_name{};
  int decimals = 1;
  bool with_legend = true;
  bool with_values = true;  // print values inside the parts where they fit
};
// Empty if there is nothing to draw: no positive or no finite value. Of more than 32 bars, equal ones are drawn
// once: "ranks 0-31", with all of them below in a <details>.
[[nodiscard]] Markup bar_chart(const BarChart& chart);

// A point of a scatter plot.
struct ScatterPoint {
  double x = 0, y = 0;
  std::string colour;                       // CSS class
  std::string name;                         // the tooltip
  std::string label{};                      // text next to the point; few points have one
  std::optional<double> x_low{}, x_high{};  // interval, drawn as a line
};
struct ScatterChart {
  std::vector<ScatterPoint> points;
  std::string x_title, y_title;
  std::vector<LegendEntry> legend{};
  std::optional<double> y_limit{};  // a horizontal line, such as a capacity
  std::string y_limit_name{};
  std::optional<double> x_limit{};  // a vertical line, such as a deadline
  std::string x_limit_name{};
};
// Empty if no point is finite.
[[nodiscard]] Markup scatter_chart(const ScatterChart& chart);

// One change of a waterfall; its sign says whether it goes up or down.
struct WaterfallStep {
  std::string name;
  double change = 0;
};
// A way from one value to another through the changes between them. The difference that the steps leave is
// drawn as a step of its own.
struct WaterfallChart {
  std::string from_name, to_name;
  double from = 0, to = 0;
  std::vector<WaterfallStep> steps;
  std::string rest_name;  // name of that remaining step
  std::string unit;
  int decimals = 1;
  bool from_zero = false;  // the axis begins at zero even if the changes are small
};
[[nodiscard]] Markup waterfall_chart(const WaterfallChart& chart);

// A cell of a matrix; cells with no value are not listed.
struct MatrixCell {
  std::size_t row = 0, column = 0;
  double value = 0;
};
struct MatrixChart {
  std::vector<std::string> rows, columns;
  std::string row_title, column_title, unit;
  std::vector<MatrixCell> cells;  // only cells with a value
  int decimals = 2;
};
// Darker cells have larger values. Matrices with few columns show the values in their cells.
[[nodiscard]] Markup matrix_chart(const MatrixChart& chart);

// One row per rank or stage, with time to the right, a legend, and a line that says what is left out. Empty
// for a picture without rows. report.js lets the reader move and zoom it.
[[nodiscard]] Markup schedule_chart(const StepPicture& picture);

// The elements of charts. open_plot() opens a <div> and an <svg>, which the caller closes.
void open_plot(Markup& out, double width, double height);
void draw_line(Markup& svg, std::string_view kind, double x1, double x2, double y1, double y2);
// `kind`: the CSS class, which also determines the alignment of a text.
void draw_text(Markup& svg, std::string_view kind, double x, double y, std::string_view text);
// `title`: the tooltip; empty: none.
void draw_rect(Markup& svg, std::string_view kind, double x, double y, double width, double height,
               std::string_view title = {});

// A point with a tooltip.
void draw_dot(Markup& svg, std::string_view colour, double x, double y, std::string_view title);

// A round number for an axis: "0.25", "20,000", "50,000,000".
[[nodiscard]] std::string tick_text(double tick);
// About `count` round numbers between `low` and `high`; none if the interval is empty or not finite.
[[nodiscard]] std::vector<double> round_ticks(double low, double high, int count);

}  // namespace stepcast
