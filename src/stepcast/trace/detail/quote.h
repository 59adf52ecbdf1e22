// Quotes input text in error messages.
#pragma once

#include <string>
#include <string_view>

namespace stepcast::detail {

// The first 40 bytes of `text` in quotes, followed by "..." if there are more. Bytes that are not printable
// become \xNN.
[[nodiscard]] inline std::string quote_for_message(std::string_view text) {
  constexpr std::size_t kLongest = 40;
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string out = "\"";
  for (const char c : text.substr(0, kLongest)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte < 0x7f) {
      out += c;
    } else {
      out += "\\x";
      out += kHex[byte >> 4];
      out += kHex[byte & 15];
    }
  }
  out += text.size() > kLongest ? "...\"" : "\"";
  return out;
}

}  // namespace stepcast::detail
