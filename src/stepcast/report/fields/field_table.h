// Makes tables of documents from lists of members (report/fields/field_list.h): a member with a column
// description is a column, and an item is a row.
//
//   void fields(auto& a, Is<Stall> auto& s) {
//     a("step", s.step, "", {"step"});
//     a("lost_ms", s.lost_ms, "beyond the usual", {"lost s", 1, 1e-3});
//     column(a, {"where<"}, s.between_steps ? "before the step" : "in the step");  // a column without a key
//   }
//
//   ReportTable table = table_of(stalls);
//
//   ReportTable ranks{"rank"};  // one column in front of those of the members, one behind them
//   for (std::size_t r = 0; r < all.size(); ++r) add_row(ranks, {std::to_string(r)}, all[r]).cell(note_of(all[r]));
//   ranks.add_columns("note<");
//
// If a described member (base/fields.h) is not a column itself, its members are columns.
#pragma once

#include <concepts>
#include <optional>
#include <ranges>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "stepcast/report/cell_text.h"
#include "stepcast/report/document.h"
#include "stepcast/report/fields/field_list.h"

namespace stepcast {
namespace detail {

// A number as a cell: scaled and formatted as the column says.
[[nodiscard]] ReportCell number_cell(double number, const TableColumn& column);

// A list of texts, which a cell shows separated by commas.
template <class T>
concept WordsField = ListField<T> && TextField<std::ranges::range_value_t<const T>>;

// An archive for fields(): collects the cells of one item, together with their columns.
class FieldRow {
 public:
  // One cell.
  struct Field {
    std::string_view key;  // the JSON key; empty for computed columns and inner objects
    TableColumn column;
    ReportCell cell;
    double number = 0;  // the value, if the member is a plain number
  };

  // Called by the lists of members. Members without a column are skipped, but described structs are entered.
  template <class T>
  void operator()(std::string_view key, const T& member, std::string_view /*meaning*/ = {},
                  const TableColumn& column = {}) {
    if (column.heading.data() != nullptr) {
      fields_.push_back({depth_ > 0 ? std::string_view{} : key, column, cell(member, column)});
      if constexpr (std::is_arithmetic_v<T>) fields_.back().number = static_cast<double>(member);
    } else if constexpr (Described<T>) {
      ++depth_;
      fields(*this, member);
      --depth_;
    }
  }
  // Called for columns without a key. `value` may be a function that returns the value.
  template <class T>
  void column(const TableColumn& column, const T& value) {
    if constexpr (std::invocable<const T&>)
      fields_.push_back({{}, column, cell(value(), column)});
    else
      fields_.push_back({{}, column, cell(value, column)});
  }

  // The cells in the order of columns: by TableColumn::place, then as listed.
  [[nodiscard]] std::vector<Field> take() &&;

 private:
  // The text of a value. Missing values show TableColumn::none. Types that no table shows give an empty cell.
  template <class T>
  static ReportCell cell(const T& value, const TableColumn& column) {
    if constexpr (std::is_same_v<T, ReportCell>) {
      return value;
    } else if constexpr (kIs<T, Omittable>) {
      return value.is_given ? cell(value.value, column) : ReportCell{std::string{column.none}};
    } else if constexpr (kIs<T, std::optional>) {
      return value ? cell(*value, column) : ReportCell{std::string{column.none}};
    } else if constexpr (TextField<T>) {
      return shorten(std::string{std::string_view{value}}, column.most_width);
    } else if constexpr (FixedField<T>) {
      return number_cell(value.value, column);
    } else if constexpr (std::is_enum_v<T>) {
      return std::string{to_string(value)};
    } else if constexpr (std::is_integral_v<T>) {
      if (column.as == TableColumn::As::plain_number) return std::to_string(value);
      return number_cell(static_cast<double>(value), column);
    } else if constexpr (std::is_floating_point_v<T>) {
      return number_cell(value, column);
    } else if constexpr (UnitField<T>) {
      return number_cell(value.value(), column);
    } else if constexpr (WordsField<T>) {
      std::string words;
      for (const std::string_view word : value) words.append(words.empty() ? "" : ", ").append(word);
      return shorten(std::move(words), column.most_width);
    } else {
      return {};
    }
  }

  std::vector<Field> fields_;
  int depth_ = 0;  // the depth of nested objects
};

// Adds a row. If the table has only the columns of `first` yet, the columns of the members are added, too.
ReportRow& add_fields(ReportTable& table, std::vector<ReportCell> first, std::vector<FieldRow::Field> fields);

}  // namespace detail

// Appends a row: the cells `first`, then those of the item. A table that has only columns for `first` gets
// columns for the members. `more`: further arguments of the list of members.
template <class T, class... More>
ReportRow& add_row(ReportTable& table, std::vector<ReportCell> first, const T& item, const More&... more) {
  detail::FieldRow row;
  fields(row, item, more...);
  return detail::add_fields(table, std::move(first), std::move(row).take());
}

// A table with one row per item.
template <std::ranges::input_range Items, class... More>
[[nodiscard]] ReportTable table_of(const Items& items, const More&... more) {
  ReportTable table;
  for (const auto& item : items) add_row(table, {}, item, more...);
  return table;
}

}  // namespace stepcast
