// Vocabulary of other software: lists of words with their meanings, in tables/foreign_words.csv.
#pragma once

#include <span>
#include <string_view>

namespace stepcast::detail {

// A word (or several, separated by blanks) and its meaning.
struct ForeignWord {
  std::string_view word, says;
};
// A list of the table, in file order; empty if there is none.
[[nodiscard]] std::span<const ForeignWord> foreign_words(std::string_view list);

}  // namespace stepcast::detail
