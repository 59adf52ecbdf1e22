#include "stepcast/report/comparison_document.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

#include <fmt/format.h>

#include "stepcast/report/comparison_report.h"
#include "stepcast/report/detail/document_parts.h"
#include "stepcast/report/forecast_document.h"
#include "stepcast/report/html/charts.h"
#include "stepcast/report/text_table.h"

namespace stepcast {
namespace {

using detail::band_text;
using detail::ms_text;

constexpr std::size_t kMostSteps = 12, kMostRows = 20, kNameWidth = 90;
constexpr double kCoarseMs = 100;

std::string signed_ms(double ms) { return (ms > 0 ? "+" : "") + ms_text(ms); }

ReportFigure waterfall(const Comparison& c) {
  WaterfallChart chart{.from_name = "A",
                       .to_name = "B",
                       .from = c.a_step_time_ms,
                       .to = c.b_step_time_ms,
                       .steps = {},
                       .rest_name = c.parts.empty() ? "no parts are known" : "the rest",
                       .unit = "ms"};
  chart.decimals = std::max(c.a_step_time_ms, c.b_step_time_ms) >= kCoarseMs ? 1 : 3;
  for (std::size_t i = 0; i < std::min(kMostSteps, c.parts.size()); ++i) {
    chart.steps.push_back({part_text(c.parts[i].key), c.parts[i].difference_ms()});
  }
  return {waterfall_chart(chart),
          "From the step of A to that of B by the parts of the rank that ends last, the largest difference "
          "first."};
}

void add_list(ReportDocument& document, std::string title, const std::vector<Difference>& list, bool in_words,
              bool folded) {
  if (list.empty()) return;
  ReportTable table{{{"what", false}, {"A ms"}, {"B ms"}, {"B - A ms"}, {"%"}}, {}};
  for (std::size_t i = 0; i < std::min(kMostRows, list.size()); ++i) {
    const Difference& d = list[i];
    ReportCell name{in_words ? part_text(d.key) : shorten(d.key, kNameWidth)};
    if (in_words) name.swatch = part_colour(d.key);
    table.rows.push_back({std::move(name), ms_text(d.a_ms), ms_text(d.b_ms), signed_ms(d.difference_ms()),
                          d.a_ms > 0 ? table_signed(100 * d.difference_ms() / d.a_ms, 1) : "new"});
  }
  if (list.size() > kMostRows) table.caption = "and " + table_count(list.size() - kMostRows) + " more";
  document.sections.push_back({std::move(title), {std::move(table)}, folded});
}

}  // namespace

ReportDocument comparison_document(const Comparison& c, const ComparisonNames& names, std::string verdict,
                                   std::string json) {
  ReportDocument document;
  document.title = "Two steps compared";
  document.subject = {"A: " + names.a, "B: " + names.b};
  document.verdict = detail::sentence(std::move(verdict));
  if (!document.verdict.empty() && !document.verdict.ends_with('.')) document.verdict += '.';
  document.figures = {
      {"A", ms_text(c.a_step_time_ms) + " ms", band_text(c.a_p10_ms, c.a_p90_ms), names.a_source},
      {"B", ms_text(c.b_step_time_ms) + " ms", band_text(c.b_p10_ms, c.b_p90_ms), names.b_source},
      {"B less A", signed_ms(c.step_difference_ms) + " ms",
       fmt::format(
           "{}intervals {}",
           c.step_difference_percent ? table_signed(*c.step_difference_percent, 1) + " %; " : std::string{},
           c.intervals_overlap ? "overlap" : "do not overlap")}};
  document.sections.push_back({"From one to the other", {waterfall(c)}});
  add_list(document, "Where the time goes", c.parts, true, false);
  if (!c.settings.empty()) document.sections.push_back({"Settings that differ", {ReportList{c.settings}}});
  constexpr std::size_t kMostExplanations = 3;
  if (const std::string why = explanations_text(c, kMostExplanations); !why.empty()) {
    document.sections.push_back(
        {"What alone would explain the difference", {ReportText{"Likeliest first: " + why + "."}}});
  }
  add_list(document, "Ranks", c.rank_classes, false, false);
  add_list(document, "Collectives", c.collectives, false, true);
  add_list(document, "Critical path", c.critical_path, false, true);
  document.json = std::move(json);
  return document;
}

}  // namespace stepcast
