// Parses abbreviated numbers: 8k tokens, 15T tokens.
#pragma once

#include <string>

namespace stepcast {

// Replaces a non-negative integer in `text` by its digits: "8k" becomes 8192 (powers of 1024, as in names of
// sequence lengths), "1e3" becomes 1000, "010" becomes 10. Returns an error text, empty on success.
[[nodiscard]] std::string spell_out_whole(std::string& text);

// Replaces a number in `text` by one without a letter: "15T" becomes 15000000000000 (k, M, B or G, T are powers
// of 1000). Returns an error text, empty on success; infinite numbers and magnitudes above 1e24 are errors.
[[nodiscard]] std::string spell_out_number(std::string& text);

}  // namespace stepcast
