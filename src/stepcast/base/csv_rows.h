// Reads the rows of a CSV text one at a time. Cells are views of the text, without copies.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <initializer_list>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "stepcast/base/result.h"

namespace stepcast {

inline constexpr std::size_t kNoColumn = std::numeric_limits<std::size_t>::max();

// Each row must have as many cells as the header; blank lines are ignored. Cells may be in double quotes,
// with "" for a quote character. A cell cannot span lines.
class CsvRows {
 public:
  // Reads the header. `text` must outlive the rows; `name` denotes the file in errors. Errors: no header,
  // more than 4096 columns.
  [[nodiscard]] static Result<CsvRows> open(std::string_view text, std::string name);
  // Renames a column. `to` must outlive the rows.
  void rename(std::size_t column, std::string_view to) { columns_[column] = to; }
  // Errors: two columns with the same name.
  [[nodiscard]] Status check_names() const;

  // Moves to the next row; false after the last one. Errors: a row with another number of cells than the header.
  [[nodiscard]] Result<bool> next();

  [[nodiscard]] const std::vector<std::string_view>& columns() const { return columns_; }
  // Index of the column, or kNoColumn.
  [[nodiscard]] std::size_t find(std::string_view column) const;
  [[nodiscard]] bool has(std::string_view column) const { return find(column) != kNoColumn; }

  // The cell of the current row without surrounding blanks; empty for kNoColumn.
  [[nodiscard]] std::string_view cell(std::size_t column) const {
    return column < cells_.size() ? cells_[column] : std::string_view{};
  }
  [[nodiscard]] std::string_view cell(std::string_view column) const { return cell(find(column)); }
  [[nodiscard]] std::uint32_t line() const { return line_; }  // line of the current row; the header is line 1
  [[nodiscard]] const std::string& name() const { return name_; }

  // An Error at the current line and this column, with the cell as the found value.
  [[nodiscard]] Error error(std::string_view column, std::string problem = {}) const;

  // Numbers of the current row, at least `least`. Missing and empty cells give `otherwise`, and are errors if
  // it is not given. Extents are at most 2^50, other numbers at most 1e18.
  [[nodiscard]] Result<std::int64_t> extent(std::string_view column, std::int64_t least = 1,
                                            std::optional<std::int64_t> otherwise = std::nullopt) const;
  [[nodiscard]] Result<double> number(std::string_view column, double least,
                                      std::optional<double> otherwise = std::nullopt) const;
  // Reads several extents: rows.extents({{"m", &s.m}, {"batch", &s.batch, 1, 1}}).
  struct Extent {
    std::string_view column;
    std::int64_t* to;
    std::int64_t least = 1;
    std::optional<std::int64_t> otherwise{};
  };
  [[nodiscard]] Status extents(std::initializer_list<Extent> cells) const;
  // A truth value: 0 or 1, false or true, no or yes. Empty cells give `otherwise`.
  [[nodiscard]] Result<bool> truth(std::string_view column, bool otherwise) const;

 private:
  CsvRows() = default;
  // Splits the line that starts at position_ into cells_; false at the end of the text.
  bool split();

  std::string_view text_;
  std::string name_;
  std::size_t position_ = 0;
  std::uint32_t line_ = 0;
  std::vector<std::string_view> columns_, cells_;
  std::deque<std::string> unquoted_;  // unquoted cells of the current row, for `cells_` to view
  std::deque<std::string> kept_;      // unquoted cells of the header, for `columns_` to view
};

}  // namespace stepcast
