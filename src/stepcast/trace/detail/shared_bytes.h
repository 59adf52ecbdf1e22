// What bytes have in common with others that whoever reads them has, too.
//
//   const std::string own = bytes_without("a common beginning, old", "a common beginning, new");
//   bytes_with("a common beginning, old", own, 23)     // "a common beginning, new"
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace stepcast::detail {

// Pairs of numbers, seven bits a byte, the low ones first: so many bytes of its own, then so many from the base, with how far
// they stand behind where the last copy and those bytes end, its sign in the lowest bit. Before them how many there are, behind
// them the bytes of its own.
[[nodiscard]] std::string bytes_without(std::string_view base, std::string_view bytes);

// Nothing where `own` is no such thing, or is of more or fewer bytes than `size`.
[[nodiscard]] std::optional<std::string> bytes_with(std::string_view base, std::string_view own,
                                                    std::size_t size);

}  // namespace stepcast::detail
