// Recognises columns of tables and tags of scalars by name. The names are in tables/step_columns.csv.
#include "stepcast/logs/detail/step_columns.h"

#include <vector>

#include "stepcast/base/csv_rows.h"
#include "stepcast/base/shipped_table.h"
#include "stepcast/base/words.h"
#include "stepcast/logs/detail/named_units.h"

namespace stepcast::detail {
namespace {

// A row of tables/step_columns.csv. `columns` are names separated by '|'. `ms` is the unit of a time in
// milliseconds, or for rates the milliseconds of the time that the rate refers to.
struct ColumnRow {
  std::string_view kind, columns;
  double ms = 0;
};

Result<std::vector<ColumnRow>> read_columns() {
  STEPCAST_ASSIGN(CsvRows rows, CsvRows::open(shipped_table("step_columns.csv"), "step_columns.csv"));
  std::vector<ColumnRow> all;
  for (;;) {
    STEPCAST_ASSIGN(const bool more, rows.next());
    if (!more) return all;
    STEPCAST_ASSIGN(const double ms, rows.number("ms", 0, 0));
    all.push_back({rows.cell("kind"), rows.cell("columns"), ms});
  }
}

// True if the column is `name`, alone or after a prefix that ends in " - " (W&B) or '/' (a section).
bool is_called(std::string_view column, std::string_view name) {
  if (!column.ends_with(name)) return false;
  column.remove_suffix(name.size());
  return column.empty() || column.ends_with(" - ") || column.ends_with('/');
}

// The row of this kind that contains the column; null if there is none.
const ColumnRow* find_row(std::string_view column, std::string_view kind) {
  static const std::vector<ColumnRow> kRows = as_shipped(read_columns());
  for (const ColumnRow& row : kRows) {
    const auto is_name = [&](std::string_view name) { return is_called(column, name); };
    if (row.kind == kind && any_word(row.columns, is_name, '|')) return &row;
  }
  return nullptr;
}

}  // namespace

std::optional<TimeColumn> time_column(std::string_view name) {
  if (const ColumnRow* time = find_row(name, "time")) return TimeColumn{time->ms};
  if (const ColumnRow* rate = find_row(name, "per_second")) return TimeColumn{rate->ms, true};
  // The run name that W&B puts in front of a column does not count.
  const std::size_t run = name.rfind(" - ");
  return unit_in_name(name.substr(run == std::string_view::npos ? 0 : run + 3));
}
bool is_time_without_unit(std::string_view name) { return find_row(name, "time_without_unit") != nullptr; }
bool is_step_column(std::string_view name) { return find_row(name, "step") != nullptr; }
bool is_batch_column(std::string_view name) { return find_row(name, "batch") != nullptr; }
bool is_rate_column(std::string_view name) { return find_row(name, "rate") != nullptr; }
bool is_clock_column(std::string_view name) { return find_row(name, "clock") != nullptr; }

}  // namespace stepcast::detail
