#include "stepcast/report/sweep_document.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stepcast/base/json_value.h"
#include "stepcast/base/one_line.h"
#include "stepcast/report/cell_text.h"
#include "stepcast/report/sweep_row.h"
#include "stepcast/workload/memory.h"

namespace stepcast {
namespace {

std::string value_text(const JsonValue& value) {
  return value.is_text() ? value.text() : compact_json(value);
}

// "tp 8, model llama-3-70b": what the point is, in words.
std::string point_words(const SweepPoint& point) {
  std::string text;
  for (const auto& [key, value] : point.settings) {
    text += fmt::format("{}{}", text.empty() ? "" : ", ", key);
    if (!value.is_bool()) text += " " + value_text(value);
  }
  return text;
}

std::string row_text(const JsonValue& row, std::string_view key) {
  const JsonValue* value = row.find(key);
  return value != nullptr && value->is_text() ? value->text() : std::string{};
}

std::optional<double> row_number(const JsonValue& row, std::string_view key) {
  const JsonValue* value = row.find(key);
  if (value == nullptr || !value->is_number()) return std::nullopt;
  return value->number();
}

// A point with its row.
struct DonePoint {
  const SweepPoint* point = nullptr;
  JsonValue row;

  [[nodiscard]] bool fits() const {
    return row_text(row, "memory_verdict") != to_string(MemoryVerdict::does_not_fit);
  }
  // Those that fit come first, those that cannot be run last.
  [[nodiscard]] std::pair<int, double> order() const {
    const std::optional<double> step = row_number(row, "step_time_ms");
    if (!step) return {2, 0};
    return {fits() ? 0 : 1, *step};
  }
};

Result<std::vector<DonePoint>> done_points(const SweepSpec& spec, const SweepRows& rows,
                                           const std::function<bool(const SweepPoint&)>& counts) {
  std::vector<DonePoint> done;
  for (const SweepPoint& point : spec.points) {
    const auto found = rows.find(point.id);
    if (found == rows.end() || (counts && !counts(point))) continue;
    STEPCAST_ASSIGN(JsonValue row, parse_json(found->second, point.id));
    done.push_back({&point, std::move(row)});
  }
  return done;
}

SweepOutcome outcome_of(const std::vector<DonePoint>& done) {
  SweepOutcome outcome;
  outcome.fastest_ms = std::numeric_limits<double>::infinity();
  for (const DonePoint& one : done) {
    ++outcome.n;
    if (const std::string error = row_text(one.row, "error"); !error.empty()) {
      ++outcome.n_failed;
      ++outcome.errors[error];
    } else if (!one.fits()) {
      ++outcome.n_too_large;
    } else if (const std::optional<double> step = row_number(one.row, "step_time_ms");
               step && *step < outcome.fastest_ms) {
      outcome.fastest_ms = *step;
      outcome.fastest = point_words(*one.point);
    }
  }
  return outcome;
}

// The settings that are not the same in all points, in the order of their names.
std::vector<std::string> varied_settings(const SweepSpec& spec) {
  std::set<std::string, std::less<>> keys;
  for (const SweepPoint& point : spec.points)
    for (const auto& [key, value] : point.settings) keys.insert(key);
  std::vector<std::string> varied;
  for (const std::string& key : keys) {
    const auto text = [&](const SweepPoint& point) {
      const JsonValue* value = point.find(key);
      return value == nullptr ? std::string{} : value_text(*value);
    };
    const std::string first = text(spec.points.front());
    if (std::ranges::any_of(spec.points, [&](const SweepPoint& point) { return text(point) != first; }))
      varied.push_back(key);
  }
  return varied;
}

struct NumberColumn {
  std::string_view key, heading;
  int decimals;
  double scale;
};
constexpr std::array<NumberColumn, 9> kNumbers{
    {{"step_time_ms", "step ms", 1, 1},
     {"step_time_p10_ms", "p10 ms", 1, 1},
     {"step_time_p90_ms", "p90 ms", 1, 1},
     {"tokens_per_s_per_gpu", "tokens/s per GPU", 0, 1},
     {"mfu", "MFU %", 1, 100},
     {"exposed_communication_ms", "exposed communication ms", 1, 1},
     {"peak_memory_GiB", "peak GiB", 1, 1},
     {"days", "days", 1, 1},
     {"price", "price", 0, 1}}};

ReportTable points_table(const SweepSpec& spec, std::vector<DonePoint> done) {
  std::ranges::stable_sort(done, {}, &DonePoint::order);
  ReportTable table;
  const std::vector<std::string> varied = varied_settings(spec);
  for (const std::string& key : varied) table.columns.push_back({key, false});
  std::vector<NumberColumn> numbers;
  for (const NumberColumn& column : kNumbers) {
    if (std::ranges::none_of(
            done, [&](const DonePoint& one) { return row_number(one.row, column.key).has_value(); }))
      continue;
    numbers.push_back(column);
    table.columns.push_back({std::string{column.heading}});
  }
  for (const char* heading : {"memory", "layout", "why not"}) table.columns.push_back({heading, false});
  for (const DonePoint& one : done) {
    if (table.rows.size() == kMostSweepRowsOfPage) {
      table.caption = fmt::format("The first {} of {}; --merge has them all.", table_count(table.rows.size()),
                                  table_count(done.size()));
      break;
    }
    ReportRow row;
    for (const std::string& key : varied) {
      const JsonValue* value = one.point->find(key);
      row.cell(value == nullptr     ? ReportCell{}
               : value->is_number() ? ReportCell{value_text(*value), value->number()}
                                    : ReportCell{value_text(*value)});
    }
    for (const NumberColumn& column : numbers) {
      const std::optional<double> number = row_number(one.row, column.key);
      row.cell(number ? ReportCell{table_number(*number * column.scale, column.decimals), *number}
                      : ReportCell{});
    }
    row.cell(row_text(one.row, "memory_verdict"));
    row.cell(row_text(one.row, "layout"));
    row.cell(shorten(row_text(one.row, "error"), 160));
    table.rows.push_back(std::move(row));
  }
  return table;
}

}  // namespace

std::string SweepOutcome::text() const {
  std::string text;
  if (n_failed > 0) {
    text += fmt::format("{} cannot be run; their rows say why:\n", table_count(n_failed));
    constexpr std::size_t kMost = 5;
    std::size_t shown = 0;
    for (const auto& [error, count] : errors)
      if (++shown <= kMost) text += fmt::format("  {:>6}  {}\n", table_count(count), shorten(error, 160));
    if (shown > kMost) text += fmt::format("  and {} more reasons\n", shown - kMost);
  }
  if (n_too_large > 0)
    text += fmt::format("{} do not fit into the memory (memory_verdict)\n", table_count(n_too_large));
  if (!fastest.empty()) text += fmt::format("fastest that fits: {:.1f} ms: {}\n", fastest_ms, fastest);
  return text;
}

Result<SweepOutcome> sweep_outcome(const SweepSpec& spec, const SweepRows& rows,
                                   const std::function<bool(const SweepPoint&)>& counts) {
  STEPCAST_ASSIGN(const std::vector<DonePoint> done, done_points(spec, rows, counts));
  return outcome_of(done);
}

Result<ReportDocument> sweep_document(const SweepSpec& spec, const SweepRows& rows) {
  STEPCAST_ASSIGN(std::vector<DonePoint> done, done_points(spec, rows, {}));
  const SweepOutcome outcome = outcome_of(done);
  ReportDocument document;
  document.title = fmt::format("Sweep {}", in_one_line(spec.name));
  document.subject.push_back(
      fmt::format("{} of {} points are done", table_count(outcome.n), table_count(spec.points.size())));
  document.verdict = outcome.fastest.empty() ? std::string{"No point fits."}
                                             : fmt::format("Fastest that fits: {:.1f} ms: {}.",
                                                           outcome.fastest_ms, outcome.fastest);
  document.figures = {
      {.label = "points done", .value = table_count(outcome.n), .key = "n_done"},
      {.label = "cannot be run", .value = table_count(outcome.n_failed), .key = "n_failed"},
      {.label = "do not fit", .value = table_count(outcome.n_too_large), .key = "n_does_not_fit"}};
  document.add("Points", {points_table(spec, std::move(done))});
  document.json =
      sweep_status_json({spec.hash, spec.points.size(), outcome.n, outcome.n_failed, outcome.n_too_large});
  return document;
}

}  // namespace stepcast
