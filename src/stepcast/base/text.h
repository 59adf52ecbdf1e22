// What small pieces of text need all over: ASCII only, whatever the locale says.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace stepcast {

[[nodiscard]] constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }

[[nodiscard]] constexpr char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}
[[nodiscard]] inline std::string lower(std::string_view text) {
  std::string out{text};
  for (char& c : out) c = lower(c);
  return out;
}

// "a, b, c".
[[nodiscard]] inline std::string join(std::span<const std::string> words, std::string_view between = ", ") {
  std::string out;
  for (const std::string& word : words) {
    if (&word != words.data()) out += between;
    out += word;
  }
  return out;
}

}  // namespace stepcast
