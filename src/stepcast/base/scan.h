// Parses numbers, numbers with units, and lists from texts. Blanks and a plus sign are not part of a number.
//
//   scan<std::int64_t>("8192")              8192; nothing of "8k", "" and " 8"
//   scan_front<double>(text)                for "2.5GB/s" 2.5, and text becomes "GB/s"
//   scan_with_unit("40kW", kWatts)          40000 with the units {{"W", 1}, {"kW", 1e3}}
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

// Removes a number from the start of `text` and returns it. If there is none, or it does not fit into Number,
// returns nothing and leaves `text` unchanged. For double, "inf" and "nan" are numbers.
template <class Number>
[[nodiscard]] std::optional<Number> scan_front(std::string_view& text) {
  Number value{};
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
  if (read.ec != std::errc{}) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(read.ptr - text.data()));
  return value;
}

// The number that is the whole text; nothing otherwise.
template <class Number>
[[nodiscard]] std::optional<Number> scan(std::string_view text) {
  const std::optional<Number> value = scan_front<Number>(text);
  return text.empty() ? value : std::nullopt;
}

// A unit that scan_with_unit() accepts.
struct ScanUnit {
  std::string_view name;  // may be empty
  double is;              // factor from this unit to the unit of the result
};

// A number above 0 followed directly by one of the units. Nothing for other texts.
template <std::size_t N>
[[nodiscard]] std::optional<double> scan_with_unit(std::string_view text, const ScanUnit (&units)[N]) {
  const std::optional<double> value = scan_front<double>(text);
  const ScanUnit* const unit = std::ranges::find(units, text, &ScanUnit::name);
  if (!value || !(*value > 0) || unit == units + N) return std::nullopt;
  return *value * unit->is;
}

// The parts between separators, which may be empty. n separators give n + 1 parts.
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
