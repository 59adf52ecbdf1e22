#include "stepcast/report/fields/field_list.h"

#include <array>
#include <charconv>
#include <cmath>

#include <fmt/format.h>

#include "stepcast/base/version.h"
#include "stepcast/report/fields/answer_fields.h"
#include "stepcast/report/fields/read_fields.h"

// The parts of the archives in answer_fields.h and read_fields.h that do not depend on types.
namespace stepcast::detail {
namespace {

// A JSON value in an error message, cut to 60 characters.
std::string shown(const JsonValue& value) {
  if (value.is_number()) return fmt::format("{}", value.number());
  if (value.is_text()) return fmt::format("`{}`", value.text().substr(0, 60));
  if (value.is_bool()) return value.truth() ? "true" : "false";
  return std::string{value.kind_name()};
}

}  // namespace

JsonValue schema_of_type(std::string_view type) { return JsonValue::object().add("type", JsonValue{type}); }

JsonValue schema_or_null(JsonValue schema) {
  // A schema with a single type gets "null" as a second type, and other schemas become one of two
  // alternatives.
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

// Further properties are allowed, so that documents of later versions remain valid.
JsonValue schema_of_object(JsonValue properties, JsonValue required) {
  return schema_of_type("object")
      .add("properties", std::move(properties))
      .add("required", std::move(required));
}

JsonValue schema_reference(std::string_view definition) {
  return JsonValue::object().add("$ref", JsonValue{"#/$defs/" + std::string{definition}});
}

namespace {

// The name of a schema's file: "forecast.json" for "stepcast.forecast/1".
std::string schema_file(std::string_view schema) {
  constexpr std::string_view kOwner = "stepcast.";
  return std::string{schema.substr(kOwner.size(), schema.find('/') - kOwner.size())} + ".json";
}

}  // namespace

JsonValue schema_of_answer(std::string_view schema) {
  return JsonValue::object().add("$ref", JsonValue{schema_file(schema)});
}

JsonValue schema_id(std::string_view schema) {
  return JsonValue{std::string{documentation_site()} + "schemas/" + schema_file(schema)};
}

// The file begins with the standard keys; the members of the answer follow schema and version.
std::string schema_document(const AnswerHead& head, const JsonValue& properties, const JsonValue& required,
                            const SchemaDefinitions& definitions) {
  JsonValue all = JsonValue::object(), keys = JsonValue::array();
  // Rows of many have neither schema nor version, to keep them short.
  if (!head.is_row) {
    all.add("schema", JsonValue::object().add("const", JsonValue{head.schema}));
    all.add("version", schema_of_type("string").add("description", JsonValue{"of stepcast"}));
    keys.add(JsonValue{"schema"}).add(JsonValue{"version"});
  }
  for (const auto& [key, value] : properties.members()) all.add(key, value);
  for (const JsonValue& key : required.items()) keys.add(key);
  JsonValue root = JsonValue::object();
  root.add("$schema", JsonValue{"https://json-schema.org/draft/2020-12/schema"});
  root.add("$id", schema_id(head.schema));
  root.add("title", JsonValue{head.title});
  root.add("type", JsonValue{"object"});
  root.add("properties", std::move(all));
  root.add("required", std::move(keys));
  if (!definitions.empty()) {
    JsonValue defs = JsonValue::object();
    for (const auto& [name, definition] : definitions) defs.add(name, definition);
    root.add("$defs", std::move(defs));
  }
  return pretty_json(root);
}

double rounded_to_nine_digits(double value) {
  constexpr int kDigits = 9;
  // Integers below this have at most nine digits and stay exact.
  constexpr double kFirstWithMore = 1e9;
  if (std::abs(value) < kFirstWithMore && value == std::trunc(value)) return value;
  std::array<char, 32> digits;
  const char* const end =
      std::to_chars(digits.data(), digits.data() + digits.size(), value, std::chars_format::general, kDigits)
          .ptr;
  std::from_chars(digits.data(), end, value);  // infinity is written and read as such
  return value;
}

// Numbers in trees are written exactly, as they were read.
void FieldWriter::tree(const JsonValue& value) {
  if (value.is_bool()) {
    json_.value(value.truth());
  } else if (value.is_number()) {
    json_.value(value.number());
  } else if (value.is_text()) {
    json_.value(value.text());
  } else if (value.is_array()) {
    json_.begin_array();
    for (const JsonValue& item : value.items()) tree(item);
    json_.end_array();
  } else if (value.is_object()) {
    json_.begin_object();
    for (const JsonValue::Member& member : value.members()) {
      json_.key(member.key);
      tree(member.value);
    }
    json_.end_object();
  } else {
    json_.null();
  }
}

// A missing schema is reported at the first line, a wrong one at its own line.
Status check_schema(const JsonValue& root, std::string_view schema, std::string_view printed_by,
                    const std::string& name) {
  const JsonValue* found = root.find("schema");
  if (found != nullptr && found->is_text() && found->text() == schema) return Ok{};
  return Error::at(name, found == nullptr ? "line 1" : fmt::format("line {}: schema", found->line()))
      .found(found == nullptr ? "no key `schema`" : shown(*found))
      .expected(fmt::format("`{}`: what {} prints", schema, printed_by));
}

Error wrong_field(const std::string& name, const JsonValue& found, const std::string& path,
                  std::string_view expected) {
  return Error::at(name, fmt::format("line {}: {}", found.line(), path))
      .found(shown(found))
      .expected(std::string{expected});
}

Error missing_field(const std::string& name, const JsonValue& object, const std::string& path) {
  return Error::at(name, fmt::format("line {}: {}", object.line(), path), "is missing");
}

std::string either_of(const std::vector<std::string_view>& words) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i) {
    text += i == 0 ? "" : i + 1 == words.size() ? " or " : ", ";
    text += words[i];
  }
  return text;
}

}  // namespace stepcast::detail
