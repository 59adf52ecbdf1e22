// A table of text with aligned columns, for terminals and documents.
//
//   TextTable table{{{"rank", TextTable::Align::left}, {"step ms"}, {"error %"}}};
//   table.row({"0", table_number(14.455, 2), table_signed(0.03, 2)});
//   std::string text = table.text();
//
//   rank  step ms  error %
//   0       14.46    +0.03
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace stepcast {

class TextTable {
 public:
  enum class Align : std::uint8_t { left, right };
  struct Column {
    std::string heading;  // names its unit: "step ms"; "\n" begins a second line
    Align align = Align::right;
  };
  explicit TextTable(std::vector<Column> columns) : columns_(std::move(columns)) {}

  // Missing cells are empty; more cells than columns are dropped.
  void row(std::vector<std::string> cells);
  // A line of dashes under the heading or before a sum.
  void rule();
  [[nodiscard]] bool empty() const { return rows_.empty(); }

  // `indent` blanks before every line; no blanks at line ends.
  [[nodiscard]] std::string text(std::size_t indent = 0) const;
  // The same as a Markdown table; rules are left out.
  [[nodiscard]] std::string markdown() const;

 private:
  struct Row {
    std::vector<std::string> cells;
    bool is_rule = false;
  };
  std::vector<Column> columns_;
  std::vector<Row> rows_;
};

// A number with a fixed count of decimals and thousands separators: 1,234.50. "-" for what is not finite.
[[nodiscard]] std::string table_number(double number, int decimals);
// The same, but an empty text for a number that would be shown as zero.
[[nodiscard]] std::string table_number_or_blank(double number, int decimals);
// A sign always: +0.03, -1.20, 0.00 without.
[[nodiscard]] std::string table_signed(double number, int decimals);
// 1,234 with thousands separators.
[[nodiscard]] std::string table_count(std::uint64_t count);
// A number of bytes in the unit that a person would choose: "512 B", "24.0 KiB", "1.5 MiB". "-" for less than
// 0.
[[nodiscard]] std::string table_bytes(double bytes);
// Appends "  label         text": texts of several lines stand under each other.
void labelled_line(std::string& out, std::string_view label, std::string_view text);
// At most `width` characters: the end is replaced by "..".
[[nodiscard]] std::string shorten(std::string text, std::size_t width);

}  // namespace stepcast
