// The JSON Schema of a forecast, from the same list of fields that writes and reads it.

#include <map>
#include <string>
#include <type_traits>
#include <utility>

#include <fmt/format.h>

#include "stepcast/base/json_value.h"
#include "stepcast/report/detail/forecast_fields.h"
#include "stepcast/report/forecast_json.h"

namespace stepcast {
namespace {

using Definitions = std::map<std::string, JsonValue>;

template <class T>
struct IsOptional : std::false_type {};
template <class T>
struct IsOptional<std::optional<T>> : std::true_type {};
template <class T>
struct IsVector : std::false_type {};
template <class T>
struct IsVector<std::vector<T>> : std::true_type {};

JsonValue of_type(std::string_view type) { return JsonValue::object().add("type", JsonValue{type}); }

class Schema {
 public:
  template <class T>
  using Of = T;
  explicit Schema(Definitions& definitions) : definitions_(definitions) {}

  template <class T>
  void operator()(std::string_view key, T& /*member*/, std::string_view meaning) {
    JsonValue schema = schema_of<T>();
    if (!meaning.empty()) schema.add("description", JsonValue{meaning});
    properties.add(key, std::move(schema));
    required.add(JsonValue{key});
  }

  JsonValue properties = JsonValue::object(), required = JsonValue::array();

 private:
  template <class T>
  JsonValue schema_of() {
    if constexpr (std::is_same_v<T, NamedTimes>) {
      return of_type("object").add("additionalProperties", of_type("number"));
    } else if constexpr (std::is_same_v<T, std::vector<Setting>>) {
      JsonValue types = JsonValue::array();
      for (const char* type : {"boolean", "number", "string"}) types.add(JsonValue{type});
      return of_type("object").add("additionalProperties", JsonValue::object().add("type", types));
    } else if constexpr (std::is_same_v<T, EstimateSource>) {
      JsonValue words = JsonValue::array();
      for (const char* word : {"measured", "fitted", "analytic", "assumed"}) words.add(JsonValue{word});
      return JsonValue::object().add("enum", std::move(words));
    } else if constexpr (IsOptional<T>::value) {
      return or_null(schema_of<typename T::value_type>());
    } else if constexpr (IsVector<T>::value) {
      return of_type("array").add("items", schema_of<typename T::value_type>());
    } else if constexpr (std::is_same_v<T, bool>) {
      return of_type("boolean");
    } else if constexpr (std::is_integral_v<T>) {
      return of_type("integer");
    } else if constexpr (std::is_floating_point_v<T>) {
      return of_type("number");
    } else if constexpr (std::is_same_v<T, std::string>) {
      return of_type("string");
    } else {
      return defined<T>();
    }
  }

  static JsonValue or_null(JsonValue schema) {
    if (const JsonValue* type = schema.find("type")) {
      return JsonValue::object().add("type", JsonValue::array().add(*type).add(JsonValue{"null"}));
    }
    JsonValue either = JsonValue::array();
    either.add(std::move(schema)).add(of_type("null"));
    return JsonValue::object().add("anyOf", std::move(either));
  }

  template <class T>
  JsonValue defined() {
    const std::string name{detail::kSchemaName<T>};
    if (!definitions_.contains(name)) {
      definitions_.emplace(name, JsonValue{});
      Schema inner{definitions_};
      T value;
      detail::fields(inner, value);
      definitions_[name] = of_type("object")
                               .add("properties", std::move(inner.properties))
                               .add("required", std::move(inner.required));
    }
    return JsonValue::object().add("$ref", JsonValue{"#/$defs/" + name});
  }

  Definitions& definitions_;
};

}  // namespace

std::string forecast_schema() {
  Definitions definitions;
  Schema schema{definitions};
  Forecast forecast;
  detail::fields(schema, forecast);
  JsonValue properties = JsonValue::object(), required = JsonValue::array();
  properties.add("schema", JsonValue::object().add("const", JsonValue{kForecastSchema}));
  properties.add("version", of_type("string").add("description", JsonValue{"of stepcast"}));
  required.add(JsonValue{"schema"}).add(JsonValue{"version"});
  for (const auto& [key, value] : schema.properties.members()) properties.add(key, value);
  for (const JsonValue& key : schema.required.items()) required.add(key);
  JsonValue defs = JsonValue::object();
  for (auto& [name, definition] : definitions) defs.add(name, std::move(definition));
  JsonValue root = JsonValue::object();
  root.add("$schema", JsonValue{"https://json-schema.org/draft/2020-12/schema"});
  root.add("$id", JsonValue{kForecastSchema});
  root.add("title", JsonValue{"stepcast forecast"});
  root.add("type", JsonValue{"object"});
  root.add("properties", std::move(properties));
  root.add("required", std::move(required));
  root.add("$defs", std::move(defs));
  return pretty_json(root);
}

}  // namespace stepcast
