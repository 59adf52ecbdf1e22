// Which rank a file is of, as its name shows it, and ranks as people list them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "stepcast/base/result.h"

namespace stepcast {

// The number behind "rank" or "worker" ("rank-3", "RANK=3", "worker3"), else the last number of at most five digits.
[[nodiscard]] std::optional<std::int32_t> rank_in_name(std::string_view file_name);

// The number at {} in the first place where the rest of the pattern stands in the name: "host{}_gpu" gives 12 for
// "host12_gpu.json", "{}_" 7 for "gpu7_trace.json". Nothing where there is none, or no rank.
[[nodiscard]] std::optional<std::int32_t> rank_by_pattern(std::string_view file_name,
                                                          std::string_view pattern);
// An Error for a pattern without {} or with several.
[[nodiscard]] Status check_rank_pattern(std::string_view pattern);

// The words of a file name, in lower case: runs of letters and digits.
[[nodiscard]] std::vector<std::string> words_of_name(std::string_view file_name);

// "0,2-5" -> 0 2 3 4 5, ascending and without repeats.
[[nodiscard]] Result<std::vector<std::int32_t>> parse_ranks(std::string_view text);

// 0 2 3 4 5 -> "0,2-5", of ascending ranks.
[[nodiscard]] std::string list_ranks(std::span<const std::int32_t> ranks);

}  // namespace stepcast
