// The JSON of an answer and its JSON Schema (draft 2020-12) from the list of its fields (report/fields/field_list.h). For the one
// source file that holds the list.
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

// g++ 12 takes the address of a lambda that captures nothing for a use of its value.
#ifndef __clang__
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

// The head of an answer, and the two functions of its header that write and describe it:
//   STEPCAST_ANSWER(plan, PlanAnswer, "stepcast.plan/1", "stepcast plan --json")
#define STEPCAST_ANSWER(name, Answer, schema, printed_by)                          \
  constexpr AnswerHead answer_head(const Answer*) { return {schema, printed_by}; } \
  std::string name##_json(const Answer& answer) { return answer_json(answer); }    \
  std::string name##_schema() { return answer_schema<Answer>(); }

namespace stepcast {
namespace detail {

// Nine significant digits.
[[nodiscard]] double rounded_to_nine_digits(double value);

class FieldWriter {
 public:
  explicit FieldWriter(JsonWriter& json) : json_(json) {}

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
  template <class List, class Item>
  void listed(const List& list, const Item& item) {
    json_.begin_object();
    list(*this, item);
    json_.end_object();
  }
  void tree(const JsonValue& value);

  JsonWriter& json_;
  AnswerHead::Numbers numbers_ = AnswerHead::Numbers::exact;
};

using SchemaDefinitions = std::map<std::string, JsonValue>;

[[nodiscard]] JsonValue schema_of_type(std::string_view type);
// The same, or null.
[[nodiscard]] JsonValue schema_or_null(JsonValue schema);
[[nodiscard]] JsonValue schema_of_words(const std::vector<std::string_view>& words);
// A scalar that is of any of these types.
[[nodiscard]] JsonValue schema_of_types(const std::vector<std::string_view>& types);
[[nodiscard]] JsonValue schema_of_object(JsonValue properties, JsonValue required);
[[nodiscard]] JsonValue schema_reference(std::string_view definition);
// Of another answer: its file in the same folder.
[[nodiscard]] JsonValue schema_of_answer(std::string_view schema);
// Where the site of the docs has it (mkdocs.yml), which other schemas are found beside: that of "stepcast.forecast/1".
[[nodiscard]] JsonValue schema_id(std::string_view schema);
[[nodiscard]] std::string schema_document(const AnswerHead& head, const JsonValue& properties,
                                          const JsonValue& required, const SchemaDefinitions& definitions);

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

  // `value` counts for constants alone.
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

  template <class T>
  JsonValue schema_of_item(const T& each) {
    const std::ranges::range_value_t<decltype(each.items)> item{};
    FieldSchema inner{definitions_};
    each.list(inner, item);
    return schema_of_object(std::move(inner.properties), std::move(inner.required));
  }

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

// As a value of a larger document.
template <class T>
void write_answer(JsonWriter& json, const T& answer) {
  detail::FieldWriter{json}.write(answer);
}

template <class T>
[[nodiscard]] std::string answer_json(const T& answer,
                                      JsonWriter::Layout layout = JsonWriter::Layout::indented) {
  JsonWriter json{layout};
  write_answer(json, answer);
  return std::move(json).text();
}

// As docs/schemas/ holds it.
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
