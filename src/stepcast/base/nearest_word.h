// "did you mean ...?"
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stepcast {

// What is compared of a name: lower case, without blanks, hyphens and underscores. "Llama-3 8B" is
// "llama38b".
[[nodiscard]] std::string spelling_core(std::string_view text);

// The candidate that is spelled most like `word`, if one is close enough to be meant: by `most_edits` insertions, deletions
// and replacements; 0: a third of the word and one.
[[nodiscard]] std::optional<std::string> nearest_word(std::string_view word,
                                                      const std::vector<std::string>& candidates,
                                                      std::size_t most_edits = 0);

}  // namespace stepcast
