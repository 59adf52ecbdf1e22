// Conditions of a shell, in three values: what a script cannot tell by itself is not known.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace stepcast::detail {

enum class Truth : std::uint8_t { no, unknown, yes };

[[nodiscard]] Truth negated(Truth truth);
[[nodiscard]] Truth both(Truth a, Truth b);
[[nodiscard]] Truth either(Truth a, Truth b);

// `[ A = B ]`, `[[ A == B ]]`, `test ...`, `true`, `false`, `:`: comparisons of texts and whole numbers, -z, -n, `!`.
// unknown: any other command; files; an operand that holds a `$` or a backquote, as what is not known does.
[[nodiscard]] Truth truth_of_command(const std::vector<std::string>& words);

// A pattern of `case` and `[[`: `*` and `?`. unknown: brackets, or something not known in either.
[[nodiscard]] Truth matches_pattern(std::string_view text, std::string_view pattern);

}  // namespace stepcast::detail
