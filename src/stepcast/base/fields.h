// Struct members with a key and a description in one place. The rows are read by the code that writes, reads
// and documents results (report/fields/field_list.h).
//
//   struct PathShare {
//     STEPCAST_FIELDS(PathShare, "path_share");
//     STEPCAST_FIELD(std::string, what, "class, rank, or framework op and task");
//     STEPCAST_FIELD(std::uint64_t, steps, "of the path", 1);   // default 1; without a value: that of the type
//   };
//
// The struct remains an aggregate, compares equal if all members do, and may have other members and functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

namespace stepcast {

// How a table of a document shows a field. A field without a heading is not shown.
struct TableColumn {
  enum class As : std::uint8_t { number, plain_number, number_or_blank, signed_number, amount };

  // Heading with its unit as in ReportTable: "step\nms". A trailing "<" means a column of words ("layout<"),
  // and "<@" one that only pages show ("rests on<@").
  std::string_view heading{};
  int decimals = 0;
  double scale = 1;             // factor of the shown value: 100 shows a fraction as percent
  std::string_view none = "-";  // text for missing values
  As as = As::number;
  int place = 0;                                    // order of columns, ascending
  std::size_t most_width = std::string_view::npos;  // most characters of a column of words

  // For numbers that identify something: no thousands separators.
  [[nodiscard]] static constexpr TableColumn plain(std::string_view heading) {
    return {heading, 0, 1, "-", As::plain_number};
  }
  // For money, hours and energy: small values get more decimals, so that no cost is shown as 0.
  [[nodiscard]] static constexpr TableColumn amount(std::string_view heading, int decimals) {
    return {heading, decimals, 1, "-", As::amount};
  }
  // Empty instead of a shown zero.
  [[nodiscard]] static constexpr TableColumn or_blank(std::string_view heading) {
    return {heading, 0, 1, "", As::number_or_blank};
  }
  // A column of words with at most `most` characters.
  [[nodiscard]] static constexpr TableColumn words(std::string_view heading, std::size_t most) {
    return {heading, 0, 1, "", As::number, 0, most};
  }
  // The same column at another position.
  [[nodiscard]] constexpr TableColumn at(int other) const {
    TableColumn column = *this;
    column.place = other;
    return column;
  }
};

}  // namespace stepcast

// The first line in such a struct. The optional argument is the name of the struct in the schema; without it
// the struct is described where it is used.
#define STEPCAST_FIELDS(Struct, ...)                                \
  friend bool operator==(const Struct&, const Struct&) = default;   \
  static constexpr std::string_view kNameInSchema = "" __VA_ARGS__; \
  static constexpr int kFirstField = __LINE__

// A member. There is one per line, because the line numbers define the order of the fields. The optional last
// argument is the default value.
#define STEPCAST_FIELD(Type, member, meaning, ...) \
  STEPCAST_FIELD_AS(#member, Type, member, meaning __VA_OPT__(, ) __VA_ARGS__)

// The same with a key that differs from the name of the member.
#define STEPCAST_FIELD_AS(key, Type, member, meaning, ...)                           \
  static void field_at(std::integral_constant<int, __LINE__>, auto& list, auto& x) { \
    list(key, x.member, meaning);                                                    \
  }                                                                                  \
  Type member { __VA_ARGS__ }

// A member that tables show. The arguments after `meaning` initialise its TableColumn.
#define STEPCAST_COLUMN(Type, member, meaning, ...) \
  STEPCAST_COLUMN_AS(#member, Type, member, meaning, __VA_ARGS__)
#define STEPCAST_COLUMN_AS(key, Type, member, meaning, ...)                          \
  static void field_at(std::integral_constant<int, __LINE__>, auto& list, auto& x) { \
    list(key, x.member, meaning, ::stepcast::TableColumn{__VA_ARGS__});              \
  }                                                                                  \
  Type member {}

// Rows without a member: a value computed from the struct `x`, optionally also a column; and a column without a field.
#define STEPCAST_COMPUTED_FIELD(key, value, meaning, ...)                            \
  static void field_at(std::integral_constant<int, __LINE__>, auto& list, auto& x) { \
    list(key, value, meaning __VA_OPT__(, ::stepcast::TableColumn{__VA_ARGS__}));    \
  }
#define STEPCAST_COMPUTED_COLUMN(value, ...)                                         \
  static void field_at(std::integral_constant<int, __LINE__>, auto& list, auto& x) { \
    column(list, ::stepcast::TableColumn{__VA_ARGS__}, value);                       \
  }
