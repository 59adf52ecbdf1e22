// Name tables of enumerations, for to_string(), for parsing and for lists of names.
//
//   constexpr auto kNames = names<Sharding::zero1>({"none", "zero1"});
//   std::string_view to_string(Sharding s) { return kNames[s]; }
//   std::optional<Sharding> parse_sharding(std::string_view text) { return kNames.find(text); }
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <utility>

namespace stepcast {

template <class Enum, std::size_t N>
struct NameTable {
  std::array<std::pair<Enum, std::string_view>, N> entries{};

  // The name of a value. Values outside the table get the first name.
  [[nodiscard]] constexpr std::string_view operator[](Enum value) const {
    const auto i = static_cast<std::size_t>(value);
    return entries[i < N ? i : 0].second;
  }
  // The value with this name, or nothing. Linear in the number of names.
  [[nodiscard]] constexpr std::optional<Enum> find(std::string_view name) const {
    for (const auto& [value, its_name] : entries)
      if (its_name == name) return value;
    return std::nullopt;
  }
};

// Pairs for all values in the order of their declaration, starting at 0; another order does not compile.
template <class Enum, std::size_t N>
consteval NameTable<Enum, N> names(const std::pair<Enum, std::string_view> (&entries)[N]) {
  NameTable<Enum, N> table;
  for (std::size_t i = 0; i < N; ++i) {
    if (static_cast<std::size_t>(entries[i].first) != i)
      throw std::logic_error{"a value is missing or out of order"};
    table.entries[i] = entries[i];
  }
  return table;
}

// The same from names only. `Last` is the last value; a missing name does not compile.
template <auto Last, std::size_t N>
consteval NameTable<decltype(Last), N> names(const std::string_view (&all)[N]) {
  static_assert(N == static_cast<std::size_t>(Last) + 1, "a value without a name");
  NameTable<decltype(Last), N> table;
  for (std::size_t i = 0; i < N; ++i) table.entries[i] = {static_cast<decltype(Last)>(i), all[i]};
  return table;
}

// The name of one value, from the names of all values in the order of their declaration from 0 to `Last`.
// Invalid values give `other`, or the first name if `other` is empty.
//
//   std::string_view to_string(Sharding s) { return name_of<Sharding::zero1>(s, {"none", "zero1"}); }
template <auto Last, std::size_t N>
constexpr std::string_view name_of(decltype(Last) value, const std::string_view (&all)[N],
                                   std::string_view other = {}) {
  static_assert(N == static_cast<std::size_t>(Last) + 1, "a value without a name");
  const auto i = static_cast<std::size_t>(value);
  return i < N ? all[i] : other.empty() ? all[0] : other;
}

}  // namespace stepcast
