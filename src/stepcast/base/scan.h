// Numbers, numbers with units, and words out of a text. Blanks and a plus sign are no part of a number.
//
//   scan<std::int64_t>("8192")              8192; nothing of "8k", "" and " 8"
//   scan_front<double>(text)                of "2.5GB/s" 2.5, and text is "GB/s"
//   scan_with_unit("40kW", kWatts)          40000, of {{"W", 1}, {"kW", 1e3}}
//   split("a,,b", ',')                      "a", "" and "b"
#pragma once

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <optional>
#include <string_view>
#include <system_error>
#include <vector>

namespace stepcast {

// The number that `text` begins with, which is left without it. Nothing, and `text` as it was, if it begins with none, or
// with one that Number does not hold. Of a double, "inf" and "nan" are numbers.
template <class Number>
[[nodiscard]] std::optional<Number> scan_front(std::string_view& text) {
  Number value{};
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
  if (read.ec != std::errc{}) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(read.ptr - text.data()));
  return value;
}

// All of `text`.
template <class Number>
[[nodiscard]] std::optional<Number> scan(std::string_view text) {
  const std::optional<Number> value = scan_front<Number>(text);
  return text.empty() ? value : std::nullopt;
}

struct ScanUnit {
  std::string_view name;  // may be empty
  double is;              // in the unit that is asked for
};

// A number above 0 with one of the units right behind it.
template <std::size_t N>
[[nodiscard]] std::optional<double> scan_with_unit(std::string_view text, const ScanUnit (&units)[N]) {
  const std::optional<double> value = scan_front<double>(text);
  const ScanUnit* const unit = std::ranges::find(units, text, &ScanUnit::name);
  if (!value || !(*value > 0) || unit == units + N) return std::nullopt;
  return *value * unit->is;
}

// What is between the separators, which may be nothing.
[[nodiscard]] inline std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> words;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(separator, begin), text.size());
    words.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return words;
}

}  // namespace stepcast
