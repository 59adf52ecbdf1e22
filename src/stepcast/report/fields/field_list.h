// Describes the content of an answer once. From a list of its members (key, value, meaning) follow the JSON
// of --json, its reader, its JSON Schema in docs/schemas/, the typed Python (python/make_stubs.py) and the
// columns of tables.
//
// To add an answer:
//   1. x_answer.h: a struct of values, `std::string x_json(const X&)`, `std::string x_schema()` and
//      `ReportDocument x_document(const X&)` for its text, page and Markdown (report/document.h);
//   2. x_answer.cpp: the list, the macro that instantiates it, and the document:
//
//        void fields(auto& a, Is<X> auto& x) {
//          a("model", x.model, "name of the model");
//          a("step_time_ms", fixed<6>(x.step_us * 1e-3), "simulated");  // computed: cannot be read back
//          a("stages", x.stages, "of the pipeline");                    // structs with lists of their own
//        }
//
//        STEPCAST_ANSWER(x, X, "stepcast.x/1", "stepcast x --json")    // report/fields/answer_fields.h
//
//   3. a line in report/answers.cpp. `./dev docs` writes docs/schemas/x.json.
//
// `fields` and `answer_head` are found in the namespace of the type; `fields` may also be in
// stepcast::detail. A type with a name in the $defs of a schema has a function next to its list; other types
// are described in place:
//
//        constexpr std::string_view schema_name(const Stage*) { return "stage"; }
//
// A struct with keys that equal its members can be declared with STEPCAST_FIELDS (base/fields.h) instead,
// which also is its list. The macros below add further kinds of rows.
//
// A member can be: a bool, a number, a text, a unit, an enumeration with to_string(), a std::optional (null),
// a list, a list of entries (an object), a variant of scalars or of structs, a struct with fields, another
// answer, or one of the kinds below. Computed values can be written and described, but not read. A change of
// keys, their order or the text of numbers needs a new number of the schema.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <ranges>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "stepcast/base/fields.h"
#include "stepcast/base/json_value.h"

// More kinds of rows in a described struct (base/fields.h). STEPCAST_FIELD_IF_ANY: a member that has no key
// if it has no value. STEPCAST_FIELDS_OF: all fields of a member, as if they were members of this struct.
#define STEPCAST_FIELD_IF_ANY(key, Type, member, meaning, ...)                       \
  STEPCAST_COMPUTED_FIELD(key, if_any(x.member), meaning __VA_OPT__(, ) __VA_ARGS__) \
  std::optional<Type> member {}
#define STEPCAST_FIELDS_OF(Type, member)                                             \
  static void field_at(std::integral_constant<int, __LINE__>, auto& list, auto& x) { \
    fields(list, x.member);                                                          \
  }                                                                                  \
  Type member {}

namespace stepcast {

// The first two members of a document, and the format of its numbers.
struct AnswerHead {
  std::string_view schema;  // "stepcast.forecast/1"; empty: not an answer but a part of one
  // The command that prints the answer; for errors and the schema.
  std::string_view title;
  enum class Numbers : std::uint8_t {
    exact,        // the shortest text that reads back as the same double
    nine_digits,  // more than the precision of any time, and short
  } numbers = Numbers::exact;
  // True for a row of many: it does not begin with its schema.
  bool is_row = false;
};

// The type of the parameter of a list: X when an answer is read, otherwise const X. A list calls its archive
// with (key, member, meaning) and, if tables show the member, its TableColumn.
template <class T, class X>
concept Is = std::same_as<std::remove_const_t<T>, X>;

// A number with a fixed number of decimals.
template <int Decimals>
struct Fixed {
  static constexpr int kDecimals = Decimals;
  double value = 0;
};
template <int Decimals>
Fixed<Decimals> fixed(double value) {
  return {value};
}
template <int Decimals>
std::optional<Fixed<Decimals>> fixed(const std::optional<double>& value) {
  return value ? std::optional<Fixed<Decimals>>{{*value}} : std::nullopt;
}

// A member that has no key if it has no value.
template <class T>
struct Omittable {
  bool is_given = false;
  T value;
};
template <class T>
Omittable<T> if_any(std::optional<T> value) {
  return {value.has_value(), value ? std::move(*value) : T{}};
}
template <class T>
Omittable<T> given_if(bool is_given, T value) {
  return {is_given, std::move(value)};
}

// A word that never changes, such as the format of a file.
struct Constant {
  std::string_view word;
};

// One of a few words that are not values of an enumeration. All of them are needed for the schema.
struct OneOf {
  std::string_view word{};
  std::vector<std::string_view> words;
};

// An object with its members listed in place:
//   a("window_ms", Object{[&](auto& w) { w("measured", x.measured_ms); }}, "of all ranks");
template <class List>
struct Object {
  List list;
};
template <class List>
Object(List) -> Object<List>;

// Each: a list of objects, each listed by `list(archive, item)`. EachUnder: an object of such objects by
// `key(item)`. For the schema, the function is called with an item of default values, so it must not rely on
// other parts of the answer (at_or_none()).
template <class Items, class List>
struct Each {
  const Items& items;
  List list;
};
template <class Items, class List>
Each(const Items&, List) -> Each<Items, List>;
template <class Items, class Key, class List>
struct EachUnder {
  const Items& items;
  Key key;
  List list;
};
template <class Items, class Key, class List>
EachUnder(const Items&, Key, List) -> EachUnder<Items, Key, List>;

// Inside a list: a column of tables (report/fields/field_table.h) without a key in JSON. `value` may be a
// function. It is only called for tables, so it may use more than an item of default values contains.
template <class T>
void column(auto& a, const TableColumn& column, const T& value) {
  if constexpr (requires { a.column(column, value); }) a.column(column, value);
}

// The item at `i`; an item of default values if there is none.
template <class T>
const T& at_or_none(const std::vector<T>& items, std::size_t i) {
  static const T none{};
  return i < items.size() ? items[i] : none;
}

// Specialised for types that are entries: a list of them is a JSON object. Names the members that are its key
// and its value.
template <class T>
struct Entry;
template <class Key, class Value>
  requires std::convertible_to<const Key&, std::string_view>
struct Entry<std::pair<Key, Value>> {
  static constexpr auto key = &std::pair<Key, Value>::first;
  static constexpr auto value = &std::pair<Key, Value>::second;
  static constexpr std::string_view kWhat = "values";
};

namespace detail {

// Defaults for types without an answer_head() or a schema_name().
constexpr AnswerHead answer_head(const void* /*any*/) { return {}; }
constexpr std::string_view schema_name(const void* /*any*/) { return {}; }
template <class T>
constexpr AnswerHead head_of() {
  return answer_head(static_cast<const T*>(nullptr));
}

// Structs declared with STEPCAST_FIELDS (base/fields.h), and their list. Each row is a static function that
// is overloaded by its line number, so all rows must be within kMostLines lines of STEPCAST_FIELDS.
template <class T>
concept Described = requires { T::kFirstField; };
void fields(auto& a, Described auto& x) {
  using T = std::remove_const_t<std::remove_reference_t<decltype(x)>>;
  constexpr int kMostLines = 128;
  const auto at = [&]<int kBehind>(std::integral_constant<int, kBehind>) {
    using Line = std::integral_constant<int, T::kFirstField + 1 + kBehind>;
    if constexpr (requires { T::field_at(Line{}, a, x); }) T::field_at(Line{}, a, x);
  };
  [&]<int... kBehind>(std::integer_sequence<int, kBehind...>) {
    (at(std::integral_constant<int, kBehind>{}), ...);
  }(std::make_integer_sequence<int, kMostLines>{});
}
template <Described T>
constexpr std::string_view schema_name(const T* /*of the type*/) {
  return T::kNameInSchema;
}

// Whether a type is an instance of a template: std::optional<...>, std::vector<...>, Each<...>.
template <class T, template <class...> class Of>
constexpr bool kIs = false;
template <template <class...> class Of, class... T>
constexpr bool kIs<Of<T...>, Of> = true;

// The kinds of types that archives distinguish. They overlap: the archives test them in a fixed order.
template <class T>
concept FixedField = requires { T::kDecimals; };
template <class T>
concept TextField = std::convertible_to<const T&, std::string_view>;
template <class T>
concept UnitField = std::is_class_v<T> && !kIs<T, std::optional> && requires(const T& unit) {
  { unit.value() } -> std::same_as<double>;
};
template <class T>
concept ListField = std::ranges::input_range<const T> && !TextField<T>;
template <class T>
concept ObjectField = ListField<T> && requires { Entry<std::ranges::range_value_t<const T>>::key; };

// The words of an enumeration with values from 0 on. The first value without a name repeats another name, as
// in base/names.h, which ends the list.
template <class Enum>
  requires std::is_enum_v<Enum>
std::vector<std::string_view> words_of() {
  constexpr int kMost = 200;
  std::vector<std::string_view> words{to_string(Enum{})};
  for (int i = 1; i < kMost; ++i) {
    const std::string_view word = to_string(static_cast<Enum>(i));
    if (std::ranges::find(words, word) != words.end()) break;
    words.push_back(word);
  }
  return words;
}

}  // namespace detail
}  // namespace stepcast
