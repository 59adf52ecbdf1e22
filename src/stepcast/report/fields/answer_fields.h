// Writes the JSON of an answer, and its JSON Schema (draft 2020-12), from the list of its members
// (report/fields/field_list.h). Included only by the source file that contains the list, since it
// instantiates much code.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

#include "stepcast/base/json_value.h"
#include "stepcast/base/json_writer.h"
#include "stepcast/base/version.h"
#include "stepcast/report/fields/field_list.h"

// g++ 12 mistakes taking the address of a lambda without captures for a use of its value.
#ifndef __clang__
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

// Defines the head of an answer, and the two functions of its header that write and describe it:
//   STEPCAST_ANSWER(plan, PlanAnswer, "stepcast.plan/1", "stepcast plan --json")
#define STEPCAST_ANSWER(name, Answer, schema, printed_by)                          \
  constexpr AnswerHead answer_head(const Answer*) { return {schema, printed_by}; } \
  std::string name##_json(const Answer& answer) { return answer_json(answer); }    \
  std::string name##_schema() { return answer_schema<Answer>(); }

namespace stepcast {
namespace detail {

// `value` rounded to nine significant digits.
[[nodiscard]] double rounded_to_nine_digits(double value);

// An archive for fields(): writes every member as JSON. Constraints on types are checked in the order of
// write(): a type may satisfy several of them.
class FieldWriter {
 public:
  explicit FieldWriter(JsonWriter& json) : json_(json) {}

  // Called by the lists of members. Meanings and columns are for other archives.
  template <class T>
  void operator()(std::string_view key, const T& member, std::string_view /*meaning*/ = {},
                  const TableColumn& /*column*/ = {}) {
    if constexpr (kIs<T, Omittable>) {
      if (member.is_given) (*this)(key, member.value);
    } else {
      json_.key(key);
      write(member);
    }
  }

  // Writes a value of any supported type (see the list in report/fields/field_list.h).
  template <class T>
  void write(const T& value) {
    if constexpr (TextField<T>) {
      json_.value(std::string_view{value});
    } else if constexpr (std::is_floating_point_v<T>) {
      json_.value(numbers_ == AnswerHead::Numbers::exact ? value : rounded_to_nine_digits(value));
    } else if constexpr (std::is_arithmetic_v<T>) {
      json_.value(value);
    } else if constexpr (std::is_enum_v<T>) {
      json_.value(std::string_view{to_string(value)});
    } else if constexpr (kIs<T, std::optional>) {
      if (value)
        write(*value);
      else
        json_.null();
    } else if constexpr (FixedField<T>) {
      json_.fixed(value.value, T::kDecimals);
    } else if constexpr (std::is_same_v<T, Constant> || std::is_same_v<T, OneOf>) {
      json_.value(value.word);
    } else if constexpr (std::is_same_v<T, JsonValue>) {
      tree(value);
    } else if constexpr (kIs<T, Object>) {
      json_.begin_object();
      value.list(*this);
      json_.end_object();
    } else if constexpr (kIs<T, Each>) {
      json_.begin_array();
      for (const auto& item : value.items) listed(value.list, item);
      json_.end_array();
    } else if constexpr (kIs<T, EachUnder>) {
      json_.begin_object();
      for (const auto& item : value.items) {
        json_.key(value.key(item));
        listed(value.list, item);
      }
      json_.end_object();
    } else if constexpr (kIs<T, std::variant>) {
      std::visit([this](const auto& one) { this->write(one); }, value);
    } else if constexpr (ObjectField<T>) {
      json_.begin_object();
      for (const auto& one : value) {
        using OneEntry = Entry<std::remove_cvref_t<decltype(one)>>;
        (*this)(one.*OneEntry::key, one.*OneEntry::value);
      }
      json_.end_object();
    } else if constexpr (ListField<T>) {
      json_.begin_array();
      for (const auto& one : value) write(one);
      json_.end_array();
    } else if constexpr (UnitField<T>) {
      write(value.value());
    } else {
      object(value);
    }
  }

 private:
  // An object with its members. An answer inside another one begins with its own schema, unless it is a row
  // of many.
  template <class T>
  void object(const T& value) {
    constexpr AnswerHead kHead = head_of<T>();
    const AnswerHead::Numbers outer = numbers_;
    json_.begin_object();
    if constexpr (!kHead.schema.empty()) {
      numbers_ = kHead.numbers;
      if (!kHead.is_row) json_.field("schema", kHead.schema).field("version", version());
    }
    fields(*this, value);
    json_.end_object();
    numbers_ = outer;
  }
  // An item of Each or EachUnder, with the list given there.
  template <class List, class Item>
  void listed(const List& list, const Item& item) {
    json_.begin_object();
    list(*this, item);
    json_.end_object();
  }
  // A JSON value as it is in memory.
  void tree(const JsonValue& value);

  // How numbers are written in the current answer.
  JsonWriter& json_;
  AnswerHead::Numbers numbers_ = AnswerHead::Numbers::exact;
};

// The $defs of a schema by name.
using SchemaDefinitions = std::map<std::string, JsonValue>;

// Building blocks of schemas: a type such as "integer".
[[nodiscard]] JsonValue schema_of_type(std::string_view type);
// The schema, or null.
[[nodiscard]] JsonValue schema_or_null(JsonValue schema);
// One of these words.
[[nodiscard]] JsonValue schema_of_words(const std::vector<std::string_view>& words);
// A scalar of one of these types.
[[nodiscard]] JsonValue schema_of_types(const std::vector<std::string_view>& types);
// An object with these properties, and no others are required than those listed.
[[nodiscard]] JsonValue schema_of_object(JsonValue properties, JsonValue required);
// A reference to an entry of $defs.
[[nodiscard]] JsonValue schema_reference(std::string_view definition);
// A reference to another answer: its file in the same folder.
[[nodiscard]] JsonValue schema_of_answer(std::string_view schema);
// The address of a schema on the documentation site (mkdocs.yml), for "stepcast.forecast/1". Other schemas
// are found relative to it.
[[nodiscard]] JsonValue schema_id(std::string_view schema);
// The text of a schema's file.
[[nodiscard]] std::string schema_document(const AnswerHead& head, const JsonValue& properties,
                                          const JsonValue& required, const SchemaDefinitions& definitions);

// An archive for fields(): collects the schema of every member. Members of Omittable types are not required.
class FieldSchema {
 public:
  explicit FieldSchema(SchemaDefinitions& definitions) : definitions_(definitions) {}

  template <class T>
  void operator()(std::string_view key, const T& member, std::string_view meaning = {},
                  const TableColumn& /*column*/ = {}) {
    if constexpr (kIs<T, Omittable>) {
      add(key, schema_of(member.value), meaning);
    } else {
      add(key, schema_of(member), meaning);
      required.add(JsonValue{key});
    }
  }

  JsonValue properties = JsonValue::object(), required = JsonValue::array();

 private:
  void add(std::string_view key, JsonValue schema, std::string_view meaning) {
    if (!meaning.empty()) schema.add("description", JsonValue{meaning});
    properties.add(key, std::move(schema));
  }

  // The schema of a type. `value` matters only for constants and for words without an enumeration.
  template <class T>
  JsonValue schema_of(const T& value) {
    if constexpr (std::is_same_v<T, Constant>) {
      return JsonValue::object().add("const", JsonValue{value.word});
    } else if constexpr (std::is_same_v<T, OneOf>) {
      return schema_of_words(value.words);
    } else if constexpr (std::is_same_v<T, JsonValue>) {
      return JsonValue::object();
    } else if constexpr (kIs<T, Object>) {
      FieldSchema inner{definitions_};
      value.list(inner);
      return schema_of_object(std::move(inner.properties), std::move(inner.required));
    } else if constexpr (kIs<T, Each>) {
      return schema_of_type("array").add("items", schema_of_item(value));
    } else if constexpr (kIs<T, EachUnder>) {
      return schema_of_type("object").add("additionalProperties", schema_of_item(value));
    } else if constexpr (kIs<T, std::variant>) {
      return schema_of_variant(value);
    } else if constexpr (std::is_enum_v<T>) {
      return schema_of_words(words_of<T>());
    } else if constexpr (kIs<T, std::optional>) {
      return schema_or_null(schema_of(typename T::value_type{}));
    } else if constexpr (ObjectField<T>) {
      using One = std::ranges::range_value_t<const T>;
      using Value = std::remove_cvref_t<decltype(std::declval<One>().*Entry<One>::value)>;
      return schema_of_type("object").add("additionalProperties", schema_of(Value{}));
    } else if constexpr (!TextField<T> && ListField<T>) {
      return schema_of_type("array").add("items", schema_of(std::ranges::range_value_t<const T>{}));
    } else if constexpr (std::is_class_v<T> && !TextField<T> && !UnitField<T> && !FixedField<T>) {
      return schema_of_struct(value);
    } else {
      return schema_of_type(scalar_type<T>());
    }
  }

  // The schema of the items of Each or EachUnder, from an item with default values.
  template <class T>
  JsonValue schema_of_item(const T& each) {
    const std::ranges::range_value_t<decltype(each.items)> item{};
    FieldSchema inner{definitions_};
    each.list(inner, item);
    return schema_of_object(std::move(inner.properties), std::move(inner.required));
  }

  // The JSON type of a scalar.
  template <class T>
  static constexpr std::string_view scalar_type() {
    if constexpr (std::is_same_v<T, bool>)
      return "boolean";
    else if constexpr (std::is_integral_v<T>)
      return "integer";
    else if constexpr (TextField<T>)
      return "string";
    else
      return "number";
  }
  // Variants of structs become "anyOf"; variants of scalars a list of types.
  template <class... T>
  JsonValue schema_of_variant(const std::variant<T...>& /*value*/) {
    if constexpr (((std::is_class_v<T> && !TextField<T>)&&...)) {
      JsonValue either = JsonValue::array();
      (either.add(schema_of(T{})), ...);
      return JsonValue::object().add("anyOf", std::move(either));
    } else {
      return schema_of_types({scalar_type<T>()...});
    }
  }

  // Structs with a name become entries of $defs and are referred to. The entry is reserved before the members
  // are visited, so that recursive types end.
  template <class T>
  JsonValue schema_of_struct(const T& /*value*/) {
    if constexpr (constexpr AnswerHead kHead = head_of<T>(); !kHead.schema.empty()) {
      return schema_of_answer(kHead.schema);
    } else {
      const std::string name{schema_name(static_cast<const T*>(nullptr))};
      if (definitions_.contains(name)) return schema_reference(name);
      if (!name.empty()) definitions_.emplace(name, JsonValue{});
      FieldSchema inner{definitions_};
      const T value{};
      fields(inner, value);
      JsonValue schema = schema_of_object(std::move(inner.properties), std::move(inner.required));
      if (name.empty()) return schema;
      definitions_[name] = std::move(schema);
      return schema_reference(name);
    }
  }

  SchemaDefinitions& definitions_;
};

}  // namespace detail

// Writes an answer as a value inside a larger document.
template <class T>
void write_answer(JsonWriter& json, const T& answer) {
  detail::FieldWriter{json}.write(answer);
}

// The text of an answer's JSON.
template <class T>
[[nodiscard]] std::string answer_json(const T& answer,
                                      JsonWriter::Layout layout = JsonWriter::Layout::indented) {
  JsonWriter json{layout};
  write_answer(json, answer);
  return std::move(json).text();
}

// The text of an answer's schema, as in docs/schemas/.
template <class T>
[[nodiscard]] std::string answer_schema() {
  static_assert(!detail::head_of<T>().schema.empty(), "no answer_head() in the namespace of the type");
  detail::SchemaDefinitions definitions;
  detail::FieldSchema schema{definitions};
  const T value{};
  fields(schema, value);
  return detail::schema_document(detail::head_of<T>(), schema.properties, schema.required, definitions);
}

}  // namespace stepcast

#ifndef __clang__
#pragma GCC diagnostic pop
#endif
