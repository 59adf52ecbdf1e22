#include "stepcast/base/csv_rows.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "stepcast/base/scan.h"

namespace stepcast {
namespace {

// Largest extent of a tensor. Sums and multiplications of a few such numbers remain precise enough in double.
constexpr std::int64_t kMostExtent = std::int64_t{1} << 50;
constexpr std::size_t kMostColumns = 4096;

// Blanks around cells. Line ends are not blanks here, except for \r of Windows files.
bool is_csv_blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f'; }

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && is_csv_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_csv_blank(text.back())) text.remove_suffix(1);
  return text;
}

// A finite number with an optional plus sign, which std::from_chars does not accept.
std::optional<double> parse_number(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  const std::optional<double> value = scan<double>(text);
  return value && std::isfinite(*value) ? value : std::nullopt;
}

// A cell for error messages.
std::string shown(std::string_view cell) {
  return cell.empty() ? "nothing" : fmt::format("`{}`", cell.substr(0, 40));
}

}  // namespace

// The first line with a non-empty cell is the header. A byte order mark before it is dropped.
Result<CsvRows> CsvRows::open(std::string_view text, std::string name) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  CsvRows rows;
  rows.text_ = text;
  rows.name_ = std::move(name);
  bool found = false;
  while (!found && rows.split()) {
    found =
        std::any_of(rows.cells_.begin(), rows.cells_.end(), [](std::string_view c) { return !c.empty(); });
  }
  if (!found)
    return Error::at(rows.name_, "the header", "the file is empty").expected("a line that names the columns");
  if (rows.cells_.size() > kMostColumns) {
    return Error::at(rows.name_, fmt::format("line {}", rows.line_), "too many columns")
        .found(fmt::format("{}", rows.cells_.size()))
        .expected(fmt::format("at most {}", kMostColumns));
  }
  rows.columns_ = rows.cells_;
  // Names of columns may be views of unquoted cells, so these must live as long as the rows.
  rows.kept_ = std::move(rows.unquoted_);
  rows.unquoted_.clear();
  return rows;
}

Status CsvRows::check_names() const {
  std::vector<std::string_view> sorted = columns_;
  std::sort(sorted.begin(), sorted.end());
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  if (twice == sorted.end()) return Ok{};
  return Error::at(name_, "the header", fmt::format("two columns named {}", shown(*twice)));
}

// Parsing is line by line: a quoted cell cannot contain a line break, and an unclosed quote ends with its line.
bool CsvRows::split() {
  if (position_ >= text_.size()) return false;
  const std::size_t end = std::min(text_.find('\n', position_), text_.size());
  const std::string_view line = text_.substr(position_, end - position_);
  position_ = end + 1;
  ++line_;
  cells_.clear();
  unquoted_.clear();
  std::size_t i = 0;
  for (;;) {
    std::size_t begin = i;
    while (begin < line.size() && is_csv_blank(line[begin])) ++begin;
    if (begin < line.size() && line[begin] == '"') {
      bool doubled = false;
      std::size_t close = begin + 1;
      for (; close < line.size(); ++close) {
        if (line[close] != '"') continue;
        if (close + 1 >= line.size() || line[close + 1] != '"') break;
        doubled = true;
        ++close;
      }
      // Views of the text serve as cells, except for cells with doubled quotes, which need a copy without them.
      std::string_view inside = line.substr(begin + 1, std::min(close, line.size()) - begin - 1);
      if (doubled) {
        std::string& text = unquoted_.emplace_back();
        for (std::size_t c = 0; c < inside.size(); ++c) {
          text += inside[c];
          if (inside[c] == '"') ++c;
        }
        inside = text;
      }
      cells_.push_back(trimmed(inside));
      i = std::min(line.find(',', std::min(close, line.size())), line.size());
    } else {
      i = std::min(line.find(',', begin), line.size());
      cells_.push_back(trimmed(line.substr(begin, i - begin)));
    }
    if (i >= line.size()) return true;
    ++i;
  }
}

Result<bool> CsvRows::next() {
  while (split()) {
    // A blank line.
    if (cells_.size() == 1 && cells_.front().empty()) continue;
    if (cells_.size() != columns_.size()) {
      return Error::at(name_, fmt::format("line {}", line_), "a row")
          .found(fmt::format("{} cells", cells_.size()))
          .expected(fmt::format("{}, as in the header", columns_.size()));
    }
    return true;
  }
  cells_.clear();
  return false;
}

std::size_t CsvRows::find(std::string_view column) const {
  for (std::size_t i = 0; i < columns_.size(); ++i)
    if (columns_[i] == column) return i;
  return kNoColumn;
}

Error CsvRows::error(std::string_view column, std::string problem) const {
  return Error::at(name_, fmt::format("line {}, column {}", line_, column), std::move(problem))
      .found(shown(cell(column)));
}

Result<std::int64_t> CsvRows::extent(std::string_view column, std::int64_t least,
                                     std::optional<std::int64_t> otherwise) const {
  const std::string_view text = cell(column);
  if (text.empty() && otherwise) return *otherwise;
  const auto whole = scan<std::int64_t>(text);
  std::int64_t value = whole.value_or(-1);
  bool good = whole.has_value();
  if (!good) {
    // Data frames write integer columns with missing values as 4096.0.
    const auto real = parse_number(text);
    good = real && std::abs(*real) <= static_cast<double>(kMostExtent) && *real == std::floor(*real);
    if (good) value = static_cast<std::int64_t>(*real);
  }
  if (!good || value < least || value > kMostExtent)
    return error(column).expected(fmt::format("a whole number from {} to {}", least, kMostExtent));
  return value;
}

Status CsvRows::extents(std::initializer_list<Extent> cells) const {
  for (const Extent& cell : cells) {
    STEPCAST_ASSIGN(*cell.to, extent(cell.column, cell.least, cell.otherwise));
  }
  return Ok{};
}

Result<double> CsvRows::number(std::string_view column, double least, std::optional<double> otherwise) const {
  const std::string_view text = cell(column);
  if (text.empty() && otherwise) return *otherwise;
  const auto value = parse_number(text);
  if (!value || *value < least || *value > 1e18)
    return error(column).expected(fmt::format("a number of at least {}", least));
  return *value;
}

// Spellings of Python, C and data frames.
Result<bool> CsvRows::truth(std::string_view column, bool otherwise) const {
  const std::string_view text = cell(column);
  if (text.empty()) return otherwise;
  for (const std::string_view yes : {"1", "true", "True", "TRUE", "yes", "1.0"})
    if (text == yes) return true;
  for (const std::string_view no : {"0", "false", "False", "FALSE", "no", "0.0"})
    if (text == no) return false;
  return error(column).expected("0 or 1, false or true");
}

}  // namespace stepcast
