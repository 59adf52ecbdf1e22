// Shell variables, `$((...))` and `let` (integers with + - * / % and brackets; names mean variables), and conditions.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stepcast::detail {

using ShellWords = std::vector<std::string>;

// All variables are arrays; a scalar has one element. nullopt: the variable is set to an unknown value.
using ShellVariables = std::map<std::string, std::optional<ShellWords>, std::less<>>;

// The value of an expression. Nothing if it is not understood, contains an unknown variable, or exceeds 1e15.
[[nodiscard]] std::optional<std::int64_t> shell_arithmetic(std::string_view text,
                                                           const ShellVariables& variables);

// Whether a word is `NAME=...` or `NAME+=...`.
[[nodiscard]] bool is_assignment(const std::string& word);

// Executes an assignment; `left` ends with = or +=. With `surely` false the assignment may or may not happen,
// so the variable becomes unknown. If it would only append flags, the known value stays and `${NAME}` is
// appended for the unknown rest.
void assign(ShellVariables& variables, const std::string& left, ShellWords value, bool is_array,
            bool surely = true);

// Executes `let NAME=EXPRESSION`.
void let(ShellVariables& variables, const std::string& word, bool surely);

// Character classes of the shell. in_name(): letters, digits, underscore.
[[nodiscard]] constexpr bool begins_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
[[nodiscard]] constexpr bool in_name(char c) { return begins_name(c) || (c >= '0' && c <= '9'); }
[[nodiscard]] constexpr bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }
[[nodiscard]] constexpr bool is_space(char c) { return is_blank(c) || c == '\n'; }

// Truth of a condition. `unknown`: it depends on something outside the script. The order of the values
// matters for both() and either().
enum class Truth : std::uint8_t { no, unknown, yes };

// Three-valued not, and, or.
[[nodiscard]] Truth negated(Truth truth);
[[nodiscard]] Truth both(Truth a, Truth b);
[[nodiscard]] Truth either(Truth a, Truth b);

// The truth of a command: `[ A = B ]`, `[[ A == B ]]`, `test ...`, `true`, `false`, `:`, with comparisons of
// texts and integers, -z, -n and `!`. unknown: other commands, tests of files, operands that contain `$` or a
// backquote because they are not known.
[[nodiscard]] Truth truth_of_command(const std::vector<std::string>& words);

// Whether a text matches a pattern of `case` or `[[`, with `*` and `?`. unknown: patterns with brackets, or
// an operand that is not known.
[[nodiscard]] Truth matches_pattern(std::string_view text, std::string_view pattern);

}  // namespace stepcast::detail
