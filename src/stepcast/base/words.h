// Lists of words in one text, with blanks between them: for tables of names, many of which mean the same.
//
//   is_among("i64", "long int64 i64 uint64")
#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace stepcast {

// Calls f(word) with one after the other until it says true; whether it did. `between`: what stands there instead of a blank.
template <class Function>
constexpr bool any_word(std::string_view words, const Function& f, char between = ' ') {
  while (!words.empty()) {
    const std::size_t end = std::min(words.find(between), words.size());
    if (end > 0 && f(words.substr(0, end))) return true;
    words.remove_prefix(std::min(end + 1, words.size()));
  }
  return false;
}

[[nodiscard]] constexpr bool is_among(std::string_view word, std::string_view words) {
  return any_word(words, [&](std::string_view one) { return one == word; });
}

}  // namespace stepcast
