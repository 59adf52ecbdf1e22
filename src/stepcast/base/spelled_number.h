// Numbers as people write them: 8k tokens, 15T tokens.
#pragma once

#include <string>

namespace stepcast {

// Writes a whole number of 0 or more as digits: "8k" is 8192 (powers of 1024, as sequence lengths are called), "1e3"
// is 1000, "010" is 10. Returns what is wrong, or nothing.
[[nodiscard]] std::string spell_out_whole(std::string& text);

// Writes a number without its letter: "15T" is 15000000000000 (k, M, B or G, T: powers of 1000). Infinite ones and
// those above 1e24 in size are errors.
[[nodiscard]] std::string spell_out_number(std::string& text);

}  // namespace stepcast
