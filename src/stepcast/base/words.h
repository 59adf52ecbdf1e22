// Word lists in a single text, separated by blanks, for tables with many synonyms.
//
//   is_among("i64", "long int64 i64 uint64")
#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace stepcast {

// Calls f(word) for each word until it returns true. Returns whether a call did. `between` is the separator.
template <class Function>
constexpr bool any_word(std::string_view words, const Function& f, char between = ' ') {
  while (!words.empty()) {
    const std::size_t end = std::min(words.find(between), words.size());
    if (end > 0 && f(words.substr(0, end))) return true;
    words.remove_prefix(std::min(end + 1, words.size()));
  }
  return false;
}

// Whether `word` is one of the words.
[[nodiscard]] constexpr bool is_among(std::string_view word, std::string_view words) {
  return any_word(words, [&](std::string_view one) { return one == word; });
}

}  // namespace stepcast
