// Lists of pointers to members with their names, for code that uses the names: readers, and tables that are data.
//
//   STEPCAST_MEMBERS(kSizes, &Sizes::rows, &Sizes::cols);
//   kSizes.each_named([&](std::string_view name, auto member) { ... });  // "rows", &Sizes::rows
//   STEPCAST_TRY(read_members(keys, kSizes, sizes));                     // of {"rows": 4, "cols": 2}
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include "stepcast/base/json_value.h"
#include "stepcast/base/object_reader.h"
#include "stepcast/base/result.h"

namespace stepcast {

template <auto... Members>
struct MemberList {
  std::string_view spelled{};  // "&Sizes::rows, &Sizes::cols"; empty for concatenated lists
  static constexpr std::size_t size = sizeof...(Members);
  // Calls f(member) for each member, in order.
  template <class F>
  constexpr void each(F&& f) const {
    (f(Members), ...);
  }
  // Calls f(name, member) for each member, with its name in the source. Only for lists from STEPCAST_MEMBERS.
  template <class F>
  void each_named(F&& f) const {
    std::string_view rest = spelled;
    const auto next_name = [&] {
      rest.remove_prefix(rest.find("::") + 2);
      return rest.substr(0, std::min(rest.find(','), rest.size()));
    };
    (f(next_name(), Members), ...);
  }
};
// The concatenation of two lists, without names.
template <auto... A, auto... B>
constexpr MemberList<A..., B...> operator+(MemberList<A...>, MemberList<B...>) {
  return {};
}
// Defines a MemberList. Its text is the source of the arguments, which provides the names.
#define STEPCAST_MEMBERS(name, ...) \
  inline constexpr MemberList<__VA_ARGS__> name { #__VA_ARGS__ }

// The value of an enumeration with this to_string(). Nothing if there is none among the first 64.
template <class Enum>
  requires std::is_enum_v<Enum>
[[nodiscard]] std::optional<Enum> value_named(std::string_view name) {
  constexpr int kMostValues = 64;
  for (int i = 0; i < kMostValues; ++i)
    if (to_string(static_cast<Enum>(i)) == name) return static_cast<Enum>(i);
  return std::nullopt;
}

// Reads each member from the key with its name: types that ObjectReader::optional() reads, names of
// enumeration values, and string views of texts that outlive `out`. A member without a key is not changed.
// Errors: a value of another kind, an unknown name.
template <class List, class Struct>
[[nodiscard]] Status read_members(ObjectReader& keys, const List& members, Struct& out) {
  Status status = Ok{};
  members.each_named([&](std::string_view name, auto pointer) {
    if (!status.ok()) return;
    auto& member = out.*pointer;
    using Member = std::remove_reference_t<decltype(member)>;
    if constexpr (std::is_enum_v<Member>) {
      std::string word{to_string(member)};
      status = keys.optional(name, word);
      const std::optional<Member> value = value_named<Member>(word);
      if (value) member = *value;
      if (status.ok() && !value) status = keys.error(name, "unknown word").found(word);
    } else if constexpr (std::is_same_v<Member, std::string_view>) {
      const JsonValue* value = keys.take(name);
      if (value == nullptr) return;
      if (value->is_text())
        member = value->text();
      else
        status = keys.wrong_kind(name, *value, "a text");
    } else {
      status = keys.optional(name, member);
    }
  });
  return status;
}

}  // namespace stepcast
