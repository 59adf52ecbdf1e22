// Suggestions for misspelled names: "did you mean ...?"
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stepcast {

// The part of a name that comparisons use: lower case without blanks, hyphens and underscores. "Llama-3 8B"
// gives "llama38b".
[[nodiscard]] std::string spelling_core(std::string_view text);

// The candidate with the smallest edit distance to `word`, or nothing if that is above `most_edits`. 0: a
// third of the length of the word plus one. The first of equally near candidates wins.
[[nodiscard]] std::optional<std::string> nearest_word(std::string_view word,
                                                      const std::vector<std::string>& candidates,
                                                      std::size_t most_edits = 0);

}  // namespace stepcast
