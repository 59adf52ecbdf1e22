#include "stepcast/report/comparison_document.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

#include <fmt/format.h>

#include "stepcast/base/one_line.h"
#include "stepcast/report/detail/comparison_fields.h"
#include "stepcast/report/detail/document_parts.h"
#include "stepcast/report/fields/schema_fields.h"
#include "stepcast/report/fields/write_fields.h"
#include "stepcast/report/forecast_document.h"
#include "stepcast/report/html/charts.h"
#include "stepcast/report/text_table.h"

namespace stepcast {
namespace {

using detail::band_text;
using detail::ms_text;

constexpr std::size_t kMostSteps = 12, kMostDifferences = 20, kNameWidth = 90;
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

// The table of a terminal holds the first `rows`, that of a page more.
struct List {
  std::string title, terminal_title;
  const std::vector<Difference>& all;
  bool in_words = false, folded = false;
};

ReportTable table_of(const List& list, std::size_t most, bool for_terminal) {
  ReportTable table{{{for_terminal ? list.terminal_title : "what", false}, {"A ms"}, {"B ms"}, {"B - A ms"}},
                    {}};
  if (!for_terminal) table.columns.push_back({"%"});
  for (std::size_t i = 0; i < std::min(most, list.all.size()); ++i) {
    const Difference& d = list.all[i];
    ReportCell name{list.in_words ? part_text(d.key) : d.key};
    name.text = shorten(std::move(name.text), for_terminal ? 60 : kNameWidth);
    if (list.in_words) name.swatch = part_colour(d.key);
    std::vector<ReportCell> row{std::move(name), table_number(d.a_ms, 3), table_number(d.b_ms, 3),
                                table_signed(d.difference_ms(), 3)};
    if (!for_terminal)
      row.emplace_back(d.a_ms > 0 ? table_signed(100 * d.difference_ms() / d.a_ms, 1) : "new");
    table.rows.push_back(std::move(row));
  }
  if (list.all.size() > most) table.caption = fmt::format("and {} more", list.all.size() - most);
  return table;
}

void add_list(ReportDocument& document, const List& list, std::size_t rows) {
  if (list.all.empty()) return;
  document.sections.push_back({"", {TerminalText{"\n"}, table_of(list, rows, true)}, false, Shown::terminal});
  if (!list.title.empty())
    document.sections.push_back(
        {list.title, {table_of(list, kMostDifferences, false)}, list.folded, Shown::page});
}

void add_steps(ReportDocument& document, const ComparisonAnswer& answer) {
  const Comparison& c = answer.comparison;
  ReportTable table{{{"", false}, {"step ms"}, {"p10"}, {"p90"}}, {}};
  const auto add = [&](const char* name, double step_ms, double p10_ms, double p90_ms) {
    table.rows.push_back({name, table_number(step_ms, 3), table_number(p10_ms, 3), table_number(p90_ms, 3)});
  };
  add("A", c.a_step_time_ms, c.a_p10_ms, c.a_p90_ms);
  add("B", c.b_step_time_ms, c.b_p10_ms, c.b_p90_ms);
  std::string settings;
  for (const std::string& setting : c.settings) settings += "    " + setting + "\n";
  if (!settings.empty()) settings = "\n  settings that differ\n" + settings;
  document.sections.push_back({"",
                               {TerminalText{fmt::format("A  {}\nB  {}\n{}\n\n", in_one_line(answer.a),
                                                         in_one_line(answer.b), c.verdict)},
                                std::move(table), TerminalText{settings}},
                               false,
                               Shown::terminal});
}

}  // namespace

std::string explanations_text(const Comparison& c, std::size_t most) {
  std::string text;
  for (std::size_t i = 0; i < std::min(most, c.explanations.size()); ++i) {
    const Explanation& e = c.explanations[i];
    text += fmt::format("{}{} x {:.2f} (its {} ms)", text.empty() ? "" : ", or ", part_text(e.part), e.factor,
                        table_number(e.time_ms, 1));
  }
  return text;
}

std::string step_source(const Forecast& forecast) {
  return forecast.kind == "replay" ? std::string{"simulated"} : std::string{to_string(forecast.source)};
}

ComparisonAnswer comparison_answer(std::string a_name, const Forecast& a, std::string b_name,
                                   const Forecast& b) {
  return {std::move(a_name), std::move(b_name), step_source(a), step_source(b), compare(a, b)};
}

constexpr AnswerHead answer_head(const ComparisonAnswer*) {
  return {"stepcast.comparison/1", "stepcast compare --json"};
}

void fields(auto& a, Is<ComparisonAnswer> auto& answer) {
  a("a", answer.a);
  a("b", answer.b);
  fields(a, answer.comparison);
}

std::string comparison_json(const ComparisonAnswer& answer) { return answer_json(answer); }
std::string comparison_schema() { return answer_schema<ComparisonAnswer>(); }

ReportDocument comparison_document(const ComparisonAnswer& answer, std::size_t rows) {
  const Comparison& c = answer.comparison;
  ReportDocument document;
  document.title = "Two steps compared";
  document.subject = {"A: " + answer.a, "B: " + answer.b};
  document.verdict = detail::sentence(c.verdict);
  if (!document.verdict.empty() && !document.verdict.ends_with('.')) document.verdict += '.';
  document.figures = {
      {"A", ms_text(c.a_step_time_ms) + " ms", band_text(c.a_p10_ms, c.a_p90_ms), answer.a_source},
      {"B", ms_text(c.b_step_time_ms) + " ms", band_text(c.b_p10_ms, c.b_p90_ms), answer.b_source},
      {"B less A", signed_ms(c.step_difference_ms) + " ms",
       fmt::format(
           "{}intervals {}",
           c.step_difference_percent ? table_signed(*c.step_difference_percent, 1) + " %; " : std::string{},
           c.intervals_overlap ? "overlap" : "do not overlap")}};
  document.sections.push_back({"From one to the other", {waterfall(c)}, false, Shown::page});
  add_steps(document, answer);
  add_list(document, {"Where the time goes", "where the time goes", c.parts, true}, rows);
  if (!c.settings.empty())
    document.sections.push_back({"Settings that differ", {ReportList{c.settings}}, false, Shown::page});
  add_list(document, {"", "exposed communication by group", c.groups}, rows);
  add_list(document, {"Ranks", "ranks", c.rank_classes}, rows);
  add_list(document, {"Collectives", "collectives", c.collectives, false, true}, rows);
  add_list(document, {"Critical path", "critical path", c.critical_path, false, true}, rows);
  constexpr std::size_t kMostExplanations = 3;
  if (const std::string why = explanations_text(c, kMostExplanations); !why.empty()) {
    document.sections.push_back(
        {"",
         {TerminalText{
             "\n  A log does not tell where its time goes. What alone would explain the difference, "
             "likeliest first:\n    " +
             why + "\n"}},
         false,
         Shown::terminal});
    document.sections.push_back({"What alone would explain the difference",
                                 {ReportText{"Likeliest first: " + why + "."}},
                                 false,
                                 Shown::page});
  }
  document.json = comparison_json(answer);
  return document;
}

}  // namespace stepcast
