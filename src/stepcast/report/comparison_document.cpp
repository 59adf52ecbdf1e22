#include "stepcast/report/comparison_document.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "stepcast/base/one_line.h"
#include "stepcast/report/cell_text.h"
#include "stepcast/report/detail/comparison_fields.h"
#include "stepcast/report/detail/document_parts.h"
#include "stepcast/report/fields/answer_fields.h"
#include "stepcast/report/fields/field_table.h"
#include "stepcast/report/forecast_document.h"
#include "stepcast/report/html/charts.h"

namespace stepcast {
namespace {

// Steps of the waterfall, rows of a table on a page, and the width of names.
constexpr std::size_t kMostSteps = 12, kMostDifferences = 20, kStepNameWidth = 90;
constexpr double kCoarseMs = 100;

// The picture: bars that lead from the step of A to that of B, one per part, and one for the rest.
ReportFigure waterfall(const Comparison& c) {
  WaterfallChart chart{.from_name = "A",
                       .to_name = "B",
                       .from = c.a_step_time_ms,
                       .to = c.b_step_time_ms,
                       .steps = {},
                       .rest_name = c.parts.empty() ? "parts are unknown" : "the rest",
                       .unit = "ms",
                       .from_zero = !c.different_jobs.empty()};
  chart.decimals = std::max(c.a_step_time_ms, c.b_step_time_ms) >= kCoarseMs ? 1 : 3;
  for (std::size_t i = 0; i < std::min(kMostSteps, c.parts.size()); ++i)
    chart.steps.push_back({part_text(c.parts[i].key), c.parts[i].difference_ms()});
  return {waterfall_chart(chart),
          "Differences from the step of A to that of B, by parts of the rank that ends last, largest first."};
}

// A table of differences. `in_words`: keys are parts, shown in the words of reports with their colour.
ReportTable differences_table(const std::string& title, const std::vector<Difference>& all, bool in_words) {
  // The title is the heading of the first column, so that a terminal needs no line for it.
  ReportTable table{title + "<"};
  table.columns.front().most_width = 60;
  table.most = kMostDifferences;
  for (const Difference& d : all) {
    ReportCell name = in_words ? detail::part_cell(d.key) : ReportCell{d.key};
    name.text = shorten(std::move(name.text), kStepNameWidth);
    add_row(table, {std::move(name)}, d);
  }
  return table;
}

// Adds a list. A terminal shows the first `rows` entries; a page has room for more.
ReportSection& add_list(ReportDocument& document, std::string title, const std::vector<Difference>& all,
                        std::size_t rows, bool in_words = false) {
  ReportTable table = differences_table(title, all, in_words);
  table.most_in_terminal = rows;
  ReportSection& section = document.add(sentence(std::move(title)));
  section.opening = "\n";
  if (!all.empty()) section.add(std::move(table));
  return section;
}

}  // namespace

// "its" time is that of the part in the forecast; the factor is what it would have to be multiplied by.
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
  ComparisonAnswer answer{std::move(a_name), std::move(b_name), step_source(a), step_source(b),
                          compare(a, b)};
  // Notes of logs say where the log contradicts itself.
  for (const auto& [side, forecast] : {std::pair{"A", &a}, std::pair{"B", &b}})
    if (forecast->kind == "log")
      for (const std::string& note : forecast->notes)
        answer.comparison.verdict += fmt::format("; {}: {}", side, note);
  return answer;
}

// The keys of the JSON.
void fields(auto& a, Is<ComparisonAnswer> auto& answer) {
  a("a", answer.a);
  a("b", answer.b);
  fields(a, answer.comparison);
}

STEPCAST_ANSWER(comparison, ComparisonAnswer, "stepcast.comparison/1", "stepcast compare --json")

ReportDocument comparison_document(const ComparisonAnswer& answer, std::size_t rows) {
  const Comparison& c = answer.comparison;
  ReportDocument document;
  document.title = "Two steps compared";
  document.subject = {"A: " + answer.a, "B: " + answer.b};
  const bool differ = !c.different_jobs.empty();
  // The subject is above all percentages, those of the figures too.
  if (differ) document.subject.insert(document.subject.begin(), c.different_jobs);
  const std::string difference = differ ? c.verdict.substr(c.different_jobs.size() + 1) : c.verdict;
  document.verdict = sentence(difference);
  if (!document.verdict.empty() && !document.verdict.ends_with('.')) document.verdict += '.';
  document.figures = {
      {"A", duration_text(c.a_step_time_ms, c.a_p10_ms, c.a_p90_ms),
       band_text(c.a_step_time_ms, c.a_p10_ms, c.a_p90_ms), answer.a_source},
      {"B", duration_text(c.b_step_time_ms, c.b_p10_ms, c.b_p90_ms),
       band_text(c.b_step_time_ms, c.b_p10_ms, c.b_p90_ms), answer.b_source},
      {"B minus A", (c.step_difference_ms > 0 ? "+" : "") + duration_text(c.step_difference_ms),
       fmt::format(
           "{}intervals {}",
           c.step_difference_percent ? table_signed(*c.step_difference_percent, 1) + " %; " : std::string{},
           c.intervals_overlap ? "overlap" : "do not overlap")}};
  document.add("From one to the other", {waterfall(c)}).shown = Shown::page;
  ReportTable steps{"< | step ms | p10 | p90"};
  steps.row({"A"}).numbers({c.a_step_time_ms, c.a_p10_ms, c.a_p90_ms}, 3);
  steps.row({"B"}).numbers({c.b_step_time_ms, c.b_p10_ms, c.b_p90_ms}, 3);
  // Only a terminal has this heading: pages show subject and figures instead.
  ReportSection& head = document.add("", {std::move(steps)});
  head.shown = Shown::terminal;
  head.opening = fmt::format("{}{}A  {}\nB  {}\n{}\n\n", c.different_jobs, differ ? "\n" : "",
                             in_one_line(answer.a), in_one_line(answer.b), difference);
  if (!c.settings.empty())
    document.add("Settings that differ", {ReportList{c.settings, "    "}}).opening =
        "\n  settings that differ\n";
  add_list(document, "where the time goes", c.parts, rows, true);
  add_list(document, "exposed communication by group", c.groups, rows);
  add_list(document, "ranks", c.rank_classes, rows);
  add_list(document, "collectives", c.collectives, rows).folded = true;
  add_list(document, "critical path", c.critical_path, rows).folded = true;
  constexpr std::size_t kMostExplanations = 3;
  if (const std::string why = explanations_text(c, kMostExplanations); !why.empty()) {
    document.add("Changes that alone explain the difference, likeliest first", {ReportText{why, 4}}).opening =
        "\n  A log has no parts of the step. Changes that alone would explain the difference, likeliest "
        "first:\n";
  }
  constexpr std::size_t kMostParts = 8;
  ReportTable parts = differences_table("where the time goes", c.parts, true);
  parts.most = kMostParts;
  FirstScreen& screen = document.first_screen.emplace();
  if (!c.settings.empty())
    screen.blocks.emplace_back(ReportText{"Settings that differ: " + join(c.settings, "; ")});
  // The first screen shows the settings that differ, and the largest differences by part.
  screen.blocks.emplace_back(std::move(parts));
  document.json = comparison_json(answer);
  return document;
}

}  // namespace stepcast
