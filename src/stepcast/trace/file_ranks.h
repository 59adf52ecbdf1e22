// The rank of a file as its name shows it, and lists of ranks as users write them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "stepcast/base/result.h"

namespace stepcast {

// The number after "rank" or "worker" ("rank-3", "RANK=3", "worker3"), else the last number with at most five
// digits. Empty if there is none.
[[nodiscard]] std::optional<std::int32_t> rank_in_name(std::string_view file_name);

// The number at {} in the first place where the rest of the pattern matches: "host{}_gpu" gives 12 for
// "host12_gpu.json", "{}_" gives 7 for "gpu7_trace.json". Empty if the pattern does not match or the number
// is not a rank.
[[nodiscard]] std::optional<std::int32_t> rank_by_pattern(std::string_view file_name,
                                                          std::string_view pattern);
// Error if the pattern does not contain exactly one {}.
[[nodiscard]] Status check_rank_pattern(std::string_view pattern);

// The words of a file name in lower case: runs of letters and digits.
[[nodiscard]] std::vector<std::string> words_of_name(std::string_view file_name);

// Parses "0,2-5" to 0 2 3 4 5, ascending and without duplicates. Error: another form, or a rank out of range.
[[nodiscard]] Result<std::vector<std::int32_t>> parse_ranks(std::string_view text);

// Formats ascending ranks: 0 2 3 4 5 as "0,2-5".
[[nodiscard]] std::string list_ranks(std::span<const std::int32_t> ranks);

}  // namespace stepcast
