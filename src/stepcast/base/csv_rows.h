// Rows of a CSV text, one at a time, without copies: cells are views into the text.
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

// A row has to have as many cells as the header; blank lines do not count. Cells may stand in double quotes,
// inside of which "" is a quote; a cell ends with its line in any case.
class CsvRows {
 public:
  // Reads the header.
  [[nodiscard]] static Result<CsvRows> open(std::string_view text, std::string name);
  // Calls a column otherwise than the header does. `to` has to live as long as the rows.
  void rename(std::size_t column, std::string_view to) { columns_[column] = to; }
  // An Error where two columns have one name.
  [[nodiscard]] Status check_names() const;

  // Goes to the next row; false after the last one.
  [[nodiscard]] Result<bool> next();

  [[nodiscard]] const std::vector<std::string_view>& columns() const { return columns_; }
  // Index of the column, or kNoColumn.
  [[nodiscard]] std::size_t find(std::string_view column) const;
  [[nodiscard]] bool has(std::string_view column) const { return find(column) != kNoColumn; }

  // Of the current row, without blanks around it; nothing for kNoColumn.
  [[nodiscard]] std::string_view cell(std::size_t column) const {
    return column < cells_.size() ? cells_[column] : std::string_view{};
  }
  [[nodiscard]] std::string_view cell(std::string_view column) const { return cell(find(column)); }
  [[nodiscard]] std::uint32_t line() const { return line_; }  // the header is line 1
  [[nodiscard]] const std::string& name() const { return name_; }

  // An Error at this line and column of the file, with the cell as what was found.
  [[nodiscard]] Error error(std::string_view column, std::string problem = {}) const;

  // Numbers of the current row. Missing and empty cells give `otherwise` where there is one, and are errors
  // without it.
  [[nodiscard]] Result<std::int64_t> extent(std::string_view column, std::int64_t least = 1,
                                            std::optional<std::int64_t> otherwise = std::nullopt) const;
  [[nodiscard]] Result<double> number(std::string_view column, double least,
                                      std::optional<double> otherwise = std::nullopt) const;
  // Several of them: rows.extents({{"m", &s.m}, {"batch", &s.batch, 1, 1}}).
  struct Extent {
    std::string_view column;
    std::int64_t* to;
    std::int64_t least = 1;
    std::optional<std::int64_t> otherwise{};
  };
  [[nodiscard]] Status extents(std::initializer_list<Extent> cells) const;
  // 0 or 1, false or true, no or yes.
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
  std::deque<std::string> unquoted_;  // cells of this row that hold a doubled quote
  std::deque<std::string> kept_;      // the same of the header
};

}  // namespace stepcast
