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

}  // namespace stepcast::detail
