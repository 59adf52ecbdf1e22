// Pictures in SVG, with their legends: stacked bars, a waterfall, points in a plane, a matrix. Texts in them are read without
// scripts; every mark has a <title>, which browsers and report.js show when it is pointed at.
//
// Colours are classes of report.css, so that light and dark pages share one picture.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "stepcast/analyze/step_picture.h"
#include "stepcast/report/html/markup.h"

namespace stepcast {

// Class of the colour of a part of a step, by its key (ForecastClass::parts): "computation: gemm" is "c-gemm".
[[nodiscard]] std::string part_colour(std::string_view key);

struct LegendEntry {
  std::string colour, text;
};
// Colours in the order of their first appearance.
[[nodiscard]] Markup legend(const std::vector<LegendEntry>& entries);

struct BarPart {
  std::string colour;  // class
  std::string name;
  double value = 0;
};
struct Bar {
  std::string label;
  std::vector<BarPart> parts;
  std::string note{};             // behind the bar: its total
  std::optional<double> limit{};  // a line across the bar: capacity
};
inline constexpr int kByLength = -1;  // decimals: 1 from a longest bar of 100 on, 2 below
struct BarChart {
  std::vector<Bar> bars;
  std::string unit;  // of the values: "ms"
  std::string limit_name{};
  int decimals = 1;
  bool with_legend = true;
  bool with_values = true;  // in the parts, where they have room
};
[[nodiscard]] Markup bar_chart(const BarChart& chart);

struct ScatterPoint {
  double x = 0, y = 0;
  std::string colour;                       // class
  std::string name;                         // shown when pointed at
  std::string label{};                      // written beside it; few points have one
  std::optional<double> x_low{}, x_high{};  // interval
};
struct ScatterChart {
  std::vector<ScatterPoint> points;
  std::string x_title, y_title;
  std::vector<LegendEntry> legend{};
  std::optional<double> y_limit{};  // a line: capacity
  std::string y_limit_name{};
  std::optional<double> x_limit{};  // a line: deadline
  std::string x_limit_name{};
};
[[nodiscard]] Markup scatter_chart(const ScatterChart& chart);

struct WaterfallStep {
  std::string name;
  double change = 0;
};
// From one value to another by way of the changes between them; what these leave is a step of its own.
struct WaterfallChart {
  std::string from_name, to_name;
  double from = 0, to = 0;
  std::vector<WaterfallStep> steps;
  std::string rest_name;  // of what the steps leave
  std::string unit;
  int decimals = 1;
};
[[nodiscard]] Markup waterfall_chart(const WaterfallChart& chart);

struct MatrixCell {
  std::size_t row = 0, column = 0;
  double value = 0;
};
struct MatrixChart {
  std::vector<std::string> rows, columns;
  std::string row_title, column_title, unit;
  std::vector<MatrixCell> cells;  // without those of no value
  int decimals = 2;
};
// Darker is more; cells of few rows and columns hold their value.
[[nodiscard]] Markup matrix_chart(const MatrixChart& chart);

// A row for every rank or stage, time to the right, with its legend and a line that says what is left out; nothing for a
// picture without rows. report.js moves and zooms it.
[[nodiscard]] Markup schedule_chart(const StepPicture& picture);

// What charts are drawn of. A plot is left open.
void open_plot(Markup& out, double width, double height);
void draw_line(Markup& svg, std::string_view kind, double x1, double x2, double y1, double y2);
void draw_text(Markup& svg, std::string_view kind, double x, double y, std::string_view text);
// The title is shown where one points at it.
void draw_rect(Markup& svg, std::string_view kind, double x, double y, double width, double height,
               std::string_view title = {});

// A round number beside an axis: "0.25", "20,000", "50,000,000".
[[nodiscard]] std::string tick_text(double tick);
// About `count` round numbers from `low` to `high`.
[[nodiscard]] std::vector<double> round_ticks(double low, double high, int count);

}  // namespace stepcast
