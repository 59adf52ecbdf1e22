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

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

namespace stepcast {

// How tables of documents show a field (report/fields/field_table.h). Without a heading they leave it out.
struct TableColumn {
  enum class As : std::uint8_t { number, plain_number, number_or_blank, signed_number, amount };

  // With its unit, as of ReportTable: "step\nms"; "layout<" is of words, "rests on<@" on pages alone.
  std::string_view heading{};
  int decimals = 0;
  double scale = 1;             // of what is shown: 100 for percent of a fraction
  std::string_view none = "-";  // where there is no value
  As as = As::number;
  int place = 0;  // columns of a smaller place stand before those of a larger one
  std::size_t most_width = std::string_view::npos;  // characters of words

  // Without separators of thousands: a number that is a name.
  [[nodiscard]] static constexpr TableColumn plain(std::string_view heading) {
    return {heading, 0, 1, "-", As::plain_number};
  }
  // Of money, hours and energy: more decimals where it is small, so that no job costs 0.
  [[nodiscard]] static constexpr TableColumn amount(std::string_view heading, int decimals) {
    return {heading, decimals, 1, "-", As::amount};
  }
  // Empty where it would be shown as zero.
  [[nodiscard]] static constexpr TableColumn or_blank(std::string_view heading) {
    return {heading, 0, 1, "", As::number_or_blank};
  }
  [[nodiscard]] static constexpr TableColumn words(std::string_view heading, std::size_t most) {
    return {heading, 0, 1, "", As::number, 0, most};
  }
  [[nodiscard]] constexpr TableColumn at(int other) const {
    TableColumn column = *this;
    column.place = other;
    return column;
  }
};

}  // namespace stepcast

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

// A member that tables show: behind its meaning stands how (TableColumn).
#define STEPCAST_COLUMN(Type, member, meaning, ...) \
  STEPCAST_COLUMN_AS(#member, Type, member, meaning, __VA_ARGS__)
#define STEPCAST_COLUMN_AS(key, Type, member, meaning, ...)                          \
  static void field_at(std::integral_constant<int, __LINE__>, auto& list, auto& x) { \
    list(key, x.member, meaning, ::stepcast::TableColumn{__VA_ARGS__});              \
  }                                                                                  \
  Type member {}

// Rows that are no member of the struct `x`: a value that is computed, which may be a column as well; a column alone.
#define STEPCAST_COMPUTED_FIELD(key, value, meaning, ...)                            \
  static void field_at(std::integral_constant<int, __LINE__>, auto& list, auto& x) { \
    list(key, value, meaning __VA_OPT__(, ::stepcast::TableColumn{__VA_ARGS__}));    \
  }
#define STEPCAST_COMPUTED_COLUMN(value, ...)                                         \
  static void field_at(std::integral_constant<int, __LINE__>, auto& list, auto& x) { \
    column(list, ::stepcast::TableColumn{__VA_ARGS__}, value);                       \
  }
