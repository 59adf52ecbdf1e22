#include "stepcast/report/fields/schema_fields.h"

namespace stepcast::detail {

JsonValue schema_of_type(std::string_view type) { return JsonValue::object().add("type", JsonValue{type}); }

JsonValue schema_or_null(JsonValue schema) {
  if (const JsonValue* type = schema.find("type"); type != nullptr && type->is_text()) {
    JsonValue nullable =
        JsonValue::object().add("type", JsonValue::array().add(*type).add(JsonValue{"null"}));
    for (const auto& [key, value] : schema.members())
      if (key != "type") nullable.add(key, value);
    return nullable;
  }
  JsonValue either = JsonValue::array();
  either.add(std::move(schema)).add(schema_of_type("null"));
  return JsonValue::object().add("anyOf", std::move(either));
}

JsonValue schema_of_words(const std::vector<std::string_view>& words) {
  JsonValue list = JsonValue::array();
  for (const std::string_view word : words) list.add(JsonValue{word});
  return JsonValue::object().add("enum", std::move(list));
}

JsonValue schema_of_types(const std::vector<std::string_view>& types) {
  JsonValue list = JsonValue::array();
  for (const std::string_view type : types) list.add(JsonValue{type});
  return JsonValue::object().add("type", std::move(list));
}

JsonValue schema_of_object(JsonValue properties, JsonValue required) {
  return schema_of_type("object")
      .add("properties", std::move(properties))
      .add("required", std::move(required));
}

JsonValue schema_reference(std::string_view definition) {
  return JsonValue::object().add("$ref", JsonValue{"#/$defs/" + std::string{definition}});
}

JsonValue schema_of_answer(std::string_view schema) {
  constexpr std::string_view kOwner = "stepcast.";
  const std::string_view name = schema.substr(kOwner.size(), schema.find('/') - kOwner.size());
  return JsonValue::object().add("$ref", JsonValue{std::string{name} + ".json"});
}

std::string schema_document(const AnswerHead& head, const JsonValue& properties, const JsonValue& required,
                            SchemaDefinitions definitions) {
  JsonValue all = JsonValue::object(), keys = JsonValue::array();
  if (!head.is_row) {
    all.add("schema", JsonValue::object().add("const", JsonValue{head.schema}));
    all.add("version", schema_of_type("string").add("description", JsonValue{"of stepcast"}));
    keys.add(JsonValue{"schema"}).add(JsonValue{"version"});
  }
  for (const auto& [key, value] : properties.members()) all.add(key, value);
  for (const JsonValue& key : required.items()) keys.add(key);
  JsonValue root = JsonValue::object();
  root.add("$schema", JsonValue{"https://json-schema.org/draft/2020-12/schema"});
  root.add("$id", JsonValue{head.schema});
  root.add("title", JsonValue{head.title});
  root.add("type", JsonValue{"object"});
  root.add("properties", std::move(all));
  root.add("required", std::move(keys));
  if (!definitions.empty()) {
    JsonValue defs = JsonValue::object();
    for (auto& [name, definition] : definitions) defs.add(name, std::move(definition));
    root.add("$defs", std::move(defs));
  }
  return pretty_json(root);
}

}  // namespace stepcast::detail
