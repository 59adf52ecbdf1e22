// `$((...))` and `let`: whole numbers with + - * / % and brackets; names stand for variables.
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

}  // namespace stepcast::detail
