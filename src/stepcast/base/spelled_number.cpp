#include "stepcast/base/spelled_number.h"

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "stepcast/base/scan.h"

namespace stepcast {
namespace {

// A number and the letter after it: "8k" is 8 and 'k'. The letter is 0 if there is none.
struct Spelled {
  double value = 0;
  char letter = '\0';
};

// Reads digits with at most one point, an exponent and one letter. The first character is checked because
// from_chars accepts "inf" and "nan".
bool read(std::string_view text, Spelled& out) {
  const std::size_t first = text.starts_with('-') ? 1 : 0;
  if (text.size() <= first || ((text[first] < '0' || text[first] > '9') && text[first] != '.')) return false;
  const std::optional<double> value = scan_front<double>(text);
  if (!value || !std::isfinite(*value) || text.size() > 1) return false;
  out = {*value, text.empty() ? '\0' : text.front()};
  return true;
}

// Largest integer and largest number that are accepted.
constexpr double kMostWhole = 1e18, kMostNumber = 1e24;

}  // namespace

std::string spell_out_whole(std::string& text) {
  constexpr std::string_view kExpected =
      "expected a whole number of 0 or more, such as 8192, 8k (8192) or 1e3";
  Spelled spelled;
  const auto wrong = [&] { return fmt::format("found `{}`, {}", text.substr(0, 40), kExpected); };
  if (!read(text, spelled)) return wrong();
  double value = spelled.value;
  // Letters of counts are powers of 1024.
  switch (spelled.letter) {
    case '\0': break;
    case 'k':
    case 'K': value *= 1024; break;
    case 'm':
    case 'M': value *= 1024.0 * 1024.0; break;
    default: return wrong();
  }
  if (value < 0 || value > kMostWhole || value != std::floor(value)) return wrong();
  // Plain digits are read again as an integer, because they may exceed the precision of a double.
  text = std::to_string(scan<std::uint64_t>(text).value_or(static_cast<std::uint64_t>(value)));
  return {};
}

std::string spell_out_number(std::string& text) {
  // Letters of amounts are powers of 1000.
  constexpr std::array<std::pair<char, double>, 7> kLetters{
      {{'k', 1e3}, {'K', 1e3}, {'M', 1e6}, {'B', 1e9}, {'G', 1e9}, {'T', 1e12}, {'\0', 1}}};
  Spelled spelled;
  if (read(text, spelled)) {
    for (const auto& [letter, factor] : kLetters) {
      if (letter != spelled.letter) continue;
      const double value = spelled.value * factor;
      if (std::abs(value) > kMostNumber)
        return fmt::format("found `{}`, expected at most {:g}", text.substr(0, 40), kMostNumber);
      text = fmt::format("{}", value);
      return {};
    }
  }
  return fmt::format("found `{}`, expected a number, such as 0.5, 1e12 or 15T (k, M, B, T)",
                     text.substr(0, 40));
}

}  // namespace stepcast
