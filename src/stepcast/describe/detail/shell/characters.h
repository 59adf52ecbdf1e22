// Characters as a shell sees them.
#pragma once

namespace stepcast::detail {

[[nodiscard]] constexpr bool begins_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
[[nodiscard]] constexpr bool in_name(char c) { return begins_name(c) || (c >= '0' && c <= '9'); }
[[nodiscard]] constexpr bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }
[[nodiscard]] constexpr bool is_space(char c) { return is_blank(c) || c == '\n'; }

}  // namespace stepcast::detail
