#include "stepcast/report/fields/read_fields.h"

#include <fmt/format.h>

namespace stepcast::detail {
namespace {

std::string shown(const JsonValue& value) {
  if (value.is_number()) return fmt::format("{}", value.number());
  if (value.is_text()) return fmt::format("`{}`", value.text().substr(0, 60));
  if (value.is_bool()) return value.truth() ? "true" : "false";
  return std::string{value.kind_name()};
}

}  // namespace

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
