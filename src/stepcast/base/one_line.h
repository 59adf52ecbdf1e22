// Prints file names on one line.
#pragma once

#include <string>
#include <string_view>

namespace stepcast {

// Replaces control characters, including line breaks, by `?`, because they could break a line or control a terminal.
[[nodiscard]] inline std::string in_one_line(std::string_view name) {
  std::string out{name};
  for (char& c : out)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) c = '?';
  return out;
}

}  // namespace stepcast
