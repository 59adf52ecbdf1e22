// UTF-8 validation and encoding, for bytes from outside that must be text.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace stepcast {

// Length in bytes of the first character of `text`; 0 if it is not valid UTF-8 (overlong forms and surrogates
// are invalid).
[[nodiscard]] constexpr std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U; };
  const auto follows = [&](std::size_t i) { return (byte(i) & 0xC0U) == 0x80U; };
  if (text.empty()) return 0;
  const unsigned first = byte(0);
  if (first < 0x80U) return 1;
  if (first >= 0xC2U && first < 0xE0U) return follows(1) ? 2 : 0;
  if (first >= 0xE0U && first < 0xF0U) {
    if (!follows(1) || !follows(2)) return 0;
    if (first == 0xE0U && byte(1) < 0xA0U) return 0;   // overlong
    if (first == 0xEDU && byte(1) >= 0xA0U) return 0;  // a surrogate
    return 3;
  }
  if (first >= 0xF0U && first < 0xF5U) {
    if (!follows(1) || !follows(2) || !follows(3)) return 0;
    if (first == 0xF0U && byte(1) < 0x90U) return 0;
    if (first == 0xF4U && byte(1) >= 0x90U) return 0;
    return 4;
  }
  return 0;
}

// Appends a code point as UTF-8. `code` must be below 0x110000 and not a surrogate.
constexpr void append_utf8(std::string& out, unsigned code) {
  const auto tail = [&](unsigned shift) { out += static_cast<char>(0x80U | ((code >> shift) & 0x3FU)); };
  if (code < 0x80U) {
    out += static_cast<char>(code);
  } else if (code < 0x800U) {
    out += static_cast<char>(0xC0U | (code >> 6U));
    tail(0);
  } else if (code < 0x10000U) {
    out += static_cast<char>(0xE0U | (code >> 12U));
    tail(6);
    tail(0);
  } else {
    out += static_cast<char>(0xF0U | (code >> 18U));
    tail(12);
    tail(6);
    tail(0);
  }
}

}  // namespace stepcast
