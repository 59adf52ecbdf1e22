// The JSON Schema (draft 2020-12) of an answer from the list of its fields (report/fields/fields.h). For the one source
// file that holds the list.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

#include "stepcast/base/json_value.h"
#include "stepcast/report/fields/fields.h"

// g++ 12 takes the address of a lambda that captures nothing for a use of its value.
#ifndef __clang__
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

namespace stepcast {
namespace detail {

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
  void operator()(std::string_view key, const T& member, std::string_view meaning = {}) {
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
