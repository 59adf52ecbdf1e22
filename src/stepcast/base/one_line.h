// Names of files inside a line for people.
#pragma once

#include <string>
#include <string_view>

namespace stepcast {

// Control characters, line breaks too, become `?`: names may hold what a line or a terminal would obey.
[[nodiscard]] inline std::string in_one_line(std::string_view name) {
  std::string out{name};
  for (char& c : out)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) c = '?';
  return out;
}

}  // namespace stepcast
