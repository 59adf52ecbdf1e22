#include "stepcast/report/comparison_report.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stepcast/base/json_writer.h"
#include "stepcast/base/version.h"
#include "stepcast/report/forecast_document.h"
#include "stepcast/report/text_table.h"

namespace stepcast {
namespace {

void add_list(std::string& out, std::string_view title, const std::vector<Difference>& list, std::size_t rows,
              bool in_words) {
  if (list.empty()) return;
  TextTable table{{{std::string{title}, TextTable::Align::left}, {"A ms"}, {"B ms"}, {"B - A ms"}}};
  for (std::size_t i = 0; i < std::min(rows, list.size()); ++i) {
    const Difference& d = list[i];
    table.row({shorten(in_words ? part_text(d.key) : d.key, 60), table_number(d.a_ms, 3),
               table_number(d.b_ms, 3), table_signed(d.difference_ms(), 3)});
  }
  out += "\n" + table.text(2);
  if (list.size() > rows) out += fmt::format("  and {} more\n", list.size() - rows);
}

void write_list(JsonWriter& json, std::string_view key, const std::vector<Difference>& list) {
  constexpr int kDecimals = 6;
  json.key(key).begin_array();
  for (const Difference& d : list) {
    json.begin_object().field("key", d.key).fixed_field("a_ms", d.a_ms, kDecimals);
    json.fixed_field("b_ms", d.b_ms, kDecimals).fixed_field("difference_ms", d.difference_ms(), kDecimals);
    json.end_object();
  }
  json.end_array();
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

std::string comparison_text(const Comparison& c, std::size_t rows) {
  std::string out = c.verdict + "\n";
  TextTable table{{{"", TextTable::Align::left}, {"step ms"}, {"p10"}, {"p90"}}};
  table.row(
      {"A", table_number(c.a_step_time_ms, 3), table_number(c.a_p10_ms, 3), table_number(c.a_p90_ms, 3)});
  table.row(
      {"B", table_number(c.b_step_time_ms, 3), table_number(c.b_p10_ms, 3), table_number(c.b_p90_ms, 3)});
  out += "\n" + table.text(2);
  if (!c.settings.empty()) {
    out += "\n  settings that differ\n";
    for (const std::string& setting : c.settings) out += "    " + setting + "\n";
  }
  add_list(out, "where the time goes", c.parts, rows, true);
  add_list(out, "exposed communication by group", c.groups, rows, false);
  add_list(out, "ranks", c.rank_classes, rows, false);
  add_list(out, "collectives", c.collectives, rows, false);
  add_list(out, "critical path", c.critical_path, rows, false);
  constexpr std::size_t kMost = 3;
  if (const std::string why = explanations_text(c, kMost); !why.empty()) {
    out +=
        "\n  A log does not tell where its time goes. What alone would explain the difference, likeliest "
        "first:\n    " +
        why + "\n";
  }
  return out;
}

void write_comparison(JsonWriter& json, const Comparison& c) {
  json.field("verdict", c.verdict)
      .field("a_step_time_ms", c.a_step_time_ms)
      .field("b_step_time_ms", c.b_step_time_ms);
  json.field("a_step_time_p10_ms", c.a_p10_ms).field("a_step_time_p90_ms", c.a_p90_ms);
  json.field("b_step_time_p10_ms", c.b_p10_ms).field("b_step_time_p90_ms", c.b_p90_ms);
  json.field("step_difference_ms", c.step_difference_ms)
      .field("step_difference_percent", c.step_difference_percent);
  json.field("intervals_overlap", c.intervals_overlap);
  json.key("settings").begin_array();
  for (const std::string& setting : c.settings) json.value(setting);
  json.end_array();
  write_list(json, "parts", c.parts);
  write_list(json, "groups", c.groups);
  write_list(json, "rank_classes", c.rank_classes);
  write_list(json, "collectives", c.collectives);
  write_list(json, "critical_path", c.critical_path);
  json.key("explanations").begin_array();
  for (const Explanation& e : c.explanations) {
    json.begin_object()
        .field("part", e.part)
        .field("time_ms", e.time_ms)
        .field("factor", e.factor)
        .field("deviations", e.deviations)
        .end_object();
  }
  json.end_array();
}

std::string comparison_json(const Comparison& c, const std::string& a, const std::string& b) {
  JsonWriter json{JsonWriter::Layout::indented};
  json.begin_object().field("schema", "stepcast.comparison/1").field("version", version());
  json.field("a", a).field("b", b);
  write_comparison(json, c);
  json.end_object();
  return std::move(json).text();
}

}  // namespace stepcast
