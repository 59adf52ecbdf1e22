// Members that say what they mean, once: a row declares the member, and gives its key, its place and its meaning to what
// writes, reads and describes answers (report/fields/field_list.h).
//
//   struct PathShare {
//     STEPCAST_FIELDS(PathShare, "path_share");
//     STEPCAST_FIELD(std::string, what, "class, rank, or framework op and task");
//     STEPCAST_FIELD(std::uint64_t, steps, "of the path", 1);   // 1 where nobody sets it, else its type's {}
//   };
//
// It stays an aggregate, is equal where all members are, and may have other members and functions.
#pragma once

#include <string_view>
#include <type_traits>

// The first line of such a struct. Behind its name stands what a schema calls it, if it is not described where it stands.
#define STEPCAST_FIELDS(Struct, ...)                                \
  friend bool operator==(const Struct&, const Struct&) = default;   \
  static constexpr std::string_view kNameInSchema = "" __VA_ARGS__; \
  static constexpr int kFirstField = __LINE__

// A member, one a line: lines are the order of the fields. Behind the meaning stands its value where nobody sets it.
#define STEPCAST_FIELD(Type, member, meaning, ...) \
  STEPCAST_FIELD_AS(#member, Type, member, meaning __VA_OPT__(, ) __VA_ARGS__)

// The same under another key.
#define STEPCAST_FIELD_AS(key, Type, member, meaning, ...)                           \
  static void field_at(std::integral_constant<int, __LINE__>, auto& list, auto& x) { \
    list(key, x.member, meaning);                                                    \
  }                                                                                  \
  Type member { __VA_ARGS__ }
