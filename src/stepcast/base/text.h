// Helpers for short texts. They treat only ASCII letters and digits, independently of the locale.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace stepcast {

[[nodiscard]] constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Lower case.
[[nodiscard]] constexpr char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}
[[nodiscard]] inline std::string lower(std::string_view text) {
  std::string out{text};
  for (char& c : out) c = lower(c);
  return out;
}

// A number with thousands separators: "12,345.6" for "12345.6". It may have a sign and decimals.
[[nodiscard]] inline std::string with_separators(std::string_view digits) {
  const std::size_t first = digits.starts_with('-') ? 1 : 0,
                    point = std::min(digits.find('.'), digits.size());
  std::string out;
  for (std::size_t at = 0; at < digits.size(); ++at) {
    if (at > first && at < point && (point - at) % 3 == 0) out += ',';
    out += digits[at];
  }
  return out;
}

// The words with a separator between them: "a, b, c".
[[nodiscard]] inline std::string join(std::span<const std::string> words, std::string_view between = ", ") {
  std::string out;
  for (const std::string& word : words) {
    if (&word != words.data()) out += between;
    out += word;
  }
  return out;
}

}  // namespace stepcast
