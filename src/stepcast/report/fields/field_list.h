// How an answer says what it holds, once. A list of its members - key, value, meaning - gives the JSON that --json
// prints, the reader of it, and its JSON Schema in docs/schemas/, which the typed Python (python/make_stubs.py) and
// the columns of tables follow.
//
// To add an answer takes three files:
//   1. x_answer.h: a struct of values, `std::string x_json(const X&)`, `std::string x_schema()` and
//      `ReportDocument x_document(const X&)`, which is its text, its page and its Markdown (report/document.h);
//   2. x_answer.cpp: the list, what instantiates it, and the document:
//
//        void fields(auto& a, Is<X> auto& x) {
//          a("model", x.model, "name of the model");
//          a("step_time_ms", fixed<6>(x.step_us * 1e-3), "simulated");  // not to be read back
//          a("stages", x.stages, "of the pipeline");                    // lists of structs with lists of their own
//        }
//
//        STEPCAST_ANSWER(x, X, "stepcast.x/1", "stepcast x --json")    // report/fields/answer_fields.h
//
//   3. a line in report/answers.cpp. `./dev docs` writes docs/schemas/x.json.
//
// `fields` and `answer_head` stand in the namespace of the type or, `fields` alone, in stepcast::detail. A type whose list has a
// name in the $defs of a schema says it beside the list, others are described where they stand:
//
//        constexpr std::string_view schema_name(const Stage*) { return "stage"; }
//
// A struct whose keys are its members is declared with STEPCAST_FIELDS (base/fields.h), which is its list, too; among its
// rows may stand those of the macros below.
//
// A member is a bool, a number, a text, a unit, an
// enumeration with to_string(), a std::optional (null), a list, a list of entries (an object), a variant of scalars or
// of structs, a struct with fields of its own, another answer, or one of the kinds below. A value that is computed can be
// written and described, but not read. Keys, their order and the text of numbers are part of the schema's number.
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

// More rows of a described struct (base/fields.h): a member whose key is left out where it has no value; all fields of a
// member, as if they stood in its place.
#define STEPCAST_FIELD_IF_ANY(key, Type, member, meaning, ...)                       \
  STEPCAST_COMPUTED_FIELD(key, if_any(x.member), meaning __VA_OPT__(, ) __VA_ARGS__) \
  std::optional<Type> member {}
#define STEPCAST_FIELDS_OF(Type, member)                                             \
  static void field_at(std::integral_constant<int, __LINE__>, auto& list, auto& x) { \
    fields(list, x.member);                                                          \
  }                                                                                  \
  Type member {}

namespace stepcast {

// The first two keys of a document, and how its numbers are written.
struct AnswerHead {
  std::string_view schema;  // "stepcast.forecast/1"; empty: no answer of its own
  std::string_view title;
  enum class Numbers : std::uint8_t {
    exact,        // the shortest text that reads back as the same double
    nine_digits,  // more than any time is known to, few enough to read
  } numbers = Numbers::exact;
  bool is_row = false;  // one of many: does not begin with its schema
};

// What a list is of: an X where it is read, a const X otherwise. The archive is called with (key, member, meaning), and
// where tables show the member with its TableColumn.
template <class T, class X>
concept Is = std::same_as<std::remove_const_t<T>, X>;

// A number with a fixed count of decimals.
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

// A key that is left out where there is no value.
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

// A word that is always the same.
struct Constant {
  std::string_view word;
};

// One of a few words that no enumeration stands for.
struct OneOf {
  std::string_view word{};
  std::vector<std::string_view> words;
};

// An object whose fields are listed where it stands:
//   a("window_ms", Object{[&](auto& w) { w("measured", x.measured_ms); }}, "of all ranks");
template <class List>
struct Object {
  List list;
};
template <class List>
Object(List) -> Object<List>;

// A list of objects, each of which `list(archive, item)` lists; and an object of them by `key(item)`. To describe them it
// is called with an item of default values, so that it must not rely on others that the answer holds (at_or_none).
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

// In a list: a column of tables (report/fields/field_table.h) that has no key. `value` may be a function, which is called
// for tables alone: it may rely on more than an item of default values holds.
template <class T>
void column(auto& a, const TableColumn& column, const T& value) {
  if constexpr (requires { a.column(column, value); }) a.column(column, value);
}

// An item, or one of default values where there is none.
template <class T>
const T& at_or_none(const std::vector<T>& items, std::size_t i) {
  static const T none{};
  return i < items.size() ? items[i] : none;
}

// A list of these is an object: what of one is the key, and what the value.
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

// Of what names neither itself.
constexpr AnswerHead answer_head(const void* /*any*/) { return {}; }
constexpr std::string_view schema_name(const void* /*any*/) { return {}; }
template <class T>
constexpr AnswerHead head_of() {
  return answer_head(static_cast<const T*>(nullptr));
}

// A struct whose members say what they mean (base/fields.h), and their list.
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

// Whether a type is std::optional<...>, std::vector<...>, Each<...>.
template <class T, template <class...> class Of>
constexpr bool kIs = false;
template <template <class...> class Of, class... T>
constexpr bool kIs<Of<T...>, Of> = true;

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

// The words of an enumeration whose values count from 0. What has no name is called like one that has, as base/names.h does.
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
