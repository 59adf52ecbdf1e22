#include "stepcast/report/text_table.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include <fmt/format.h>

#include "stepcast/base/text.h"

namespace stepcast {
namespace {

// Characters on a terminal: UTF-8 continuation bytes take no place.
std::size_t width_of(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(
      text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

std::vector<std::string> split_lines(std::string_view text) {
  std::vector<std::string> lines;
  while (true) {
    const std::size_t end = text.find('\n');
    lines.emplace_back(text.substr(0, end));
    if (end == std::string_view::npos) return lines;
    text.remove_prefix(end + 1);
  }
}

}  // namespace

void TextTable::row(std::vector<std::string> cells) {
  cells.resize(columns_.size());
  rows_.push_back({std::move(cells), false});
}

void TextTable::rule() { rows_.push_back({{}, true}); }

std::string TextTable::text(std::size_t indent) const {
  std::vector<std::vector<std::string>> headings;
  std::size_t heading_lines = 0;
  std::vector<std::size_t> widths;
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    headings.push_back(split_lines(columns_[c].heading));
    heading_lines = std::max(heading_lines, headings.back().size());
    std::size_t width = 0;
    for (const std::string& line : headings.back()) width = std::max(width, width_of(line));
    for (const Row& row : rows_) {
      if (!row.is_rule) width = std::max(width, width_of(row.cells[c]));
    }
    widths.push_back(width);
  }
  std::string text;
  const auto add_line = [&](const auto& cell) {
    std::string line(indent, ' ');
    for (std::size_t c = 0; c < columns_.size(); ++c) {
      if (c > 0) line += "  ";
      const std::string_view content = cell(c);
      const std::size_t padding = widths[c] - std::min(widths[c], width_of(content));
      if (columns_[c].align == Align::right) line.append(padding, ' ');
      line += content;
      if (columns_[c].align == Align::left) line.append(padding, ' ');
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line;
    text += '\n';
  };
  for (std::size_t l = 0; l < heading_lines; ++l) {
    add_line([&](std::size_t c) -> std::string_view {
      // Headings stand at the bottom.
      const std::size_t missing = heading_lines - headings[c].size();
      return l < missing ? std::string_view{} : std::string_view{headings[c][l - missing]};
    });
  }
  for (const Row& row : rows_) {
    if (row.is_rule) {
      std::vector<std::string> dashes;
      for (const std::size_t width : widths) dashes.emplace_back(width, '-');
      add_line([&](std::size_t c) -> std::string_view { return dashes[c]; });
    } else {
      add_line([&](std::size_t c) -> std::string_view { return row.cells[c]; });
    }
  }
  return text;
}

std::string TextTable::markdown() const {
  const auto clean = [](std::string cell) {
    std::replace(cell.begin(), cell.end(), '\n', ' ');
    for (std::size_t at = 0; (at = cell.find('|', at)) != std::string::npos; at += 2) cell.insert(at, "\\");
    return cell;
  };
  std::string text = "|";
  for (const Column& column : columns_) text += fmt::format(" {} |", clean(column.heading));
  text += "\n|";
  for (const Column& column : columns_) text += column.align == Align::right ? "--:|" : ":--|";
  text += '\n';
  for (const Row& row : rows_) {
    if (row.is_rule) continue;
    text += '|';
    for (const std::string& cell : row.cells) text += fmt::format(" {} |", clean(cell));
    text += '\n';
  }
  return text;
}

std::string table_number(double number, int decimals) {
  if (!std::isfinite(number)) return "-";
  std::string digits = fmt::format("{:.{}f}", number, decimals);
  if (digits.starts_with('-') && digits.find_first_not_of("-0.") == std::string::npos) digits.erase(0, 1);
  return with_separators(digits);
}

std::string table_number_or_blank(double number, int decimals) {
  std::string text = table_number(number, decimals);
  return text.find_first_not_of("0.") == std::string::npos ? std::string{} : text;
}

std::string table_signed(double number, int decimals) {
  std::string text = table_number(number, decimals);
  const bool shown_as_zero = text.find_first_of("123456789") == std::string::npos;
  return number > 0 && std::isfinite(number) && !shown_as_zero ? "+" + text : text;
}

std::string table_count(std::uint64_t count) { return with_separators(fmt::format("{}", count)); }

std::string table_bytes(double bytes) {
  if (!(bytes >= 0) || !std::isfinite(bytes)) return "-";
  constexpr std::array<std::string_view, 5> kUnits{"B", "KiB", "MiB", "GiB", "TiB"};
  std::size_t unit = 0;
  while (unit + 1 < kUnits.size() && bytes >= 1024) {
    bytes /= 1024;
    ++unit;
  }
  return unit == 0 ? fmt::format("{:.0f} B", bytes) : fmt::format("{:.1f} {}", bytes, kUnits[unit]);
}

void labelled_line(std::string& out, std::string_view label, std::string_view text) {
  fmt::format_to(std::back_inserter(out), "  {:<14}{}\n", label, text);
}

std::string shorten(std::string text, std::size_t width) {
  if (width_of(text) <= width) return text;
  std::size_t bytes = 0;
  for (std::size_t characters = 0; bytes < text.size(); ++bytes) {
    const bool begins = (static_cast<unsigned char>(text[bytes]) & 0xC0U) != 0x80U;
    if (begins && characters++ == (width > 2 ? width - 2 : 0)) break;
  }
  text.resize(bytes);
  return text + "..";
}

}  // namespace stepcast
