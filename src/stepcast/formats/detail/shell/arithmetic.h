// Variables of a shell, `$((...))` and `let`: whole numbers with + - * / % and brackets; names stand for variables.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stepcast::detail {

using ShellWords = std::vector<std::string>;

// Variables are arrays; one that is no array has one element. nullopt: set, but nobody knows to what.
using ShellVariables = std::map<std::string, std::optional<ShellWords>, std::less<>>;

// Nothing for what is not understood, for a variable that is not known, and beyond 1e15.
[[nodiscard]] std::optional<std::int64_t> shell_arithmetic(std::string_view text,
                                                           const ShellVariables& variables);

// `NAME=...` or `NAME+=...`.
[[nodiscard]] bool is_assignment(const std::string& word);

// `left` ends in = or +=. What may or may not happen (`surely` false) leaves the variable unknown; where flags may be added
// behind what is known, `${NAME}` stands for them.
void assign(ShellVariables& variables, const std::string& left, ShellWords value, bool is_array,
            bool surely = true);

// `let NAME=EXPRESSION`.
void let(ShellVariables& variables, const std::string& word, bool surely);

// Characters as a shell sees them.
[[nodiscard]] constexpr bool begins_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
[[nodiscard]] constexpr bool in_name(char c) { return begins_name(c) || (c >= '0' && c <= '9'); }
[[nodiscard]] constexpr bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }
[[nodiscard]] constexpr bool is_space(char c) { return is_blank(c) || c == '\n'; }

// Conditions of a shell, in three values: what a script cannot tell by itself is not known.
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
