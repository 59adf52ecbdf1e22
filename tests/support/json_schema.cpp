#include "tests/support/json_schema.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <memory>

#include <fmt/format.h>

#include "stepcast/base/file.h"
#include "stepcast/base/json_value.h"

namespace stepcast::fixtures {
namespace {

constexpr std::array kAnnotations{"$schema", "$id", "$defs", "title", "description", "examples"};

std::string_view type_of(const JsonValue& value) {
  if (value.is_null()) return "null";
  if (value.is_bool()) return "boolean";
  if (value.is_text()) return "string";
  if (value.is_array()) return "array";
  if (value.is_object()) return "object";
  return value.number() == std::floor(value.number()) ? "integer" : "number";
}

bool is_type(const JsonValue& value, std::string_view type) {
  const std::string_view found = type_of(value);
  return found == type || (type == "number" && found == "integer");
}

class Validator {
 public:
  explicit Validator(std::filesystem::path folder) : folder_(std::move(folder)) {}

  // `root` is the document that "#/..." refers to.
  void check(const JsonValue& root, const JsonValue& schema, const JsonValue& value,
             const std::string& place) {
    if (schema.is_bool()) {
      if (!schema.truth()) report(place, "is not allowed");
      return;
    }
    if (!schema.is_object()) return report(place, "the schema is no object");
    for (const auto& [keyword, rule] : schema.members()) {
      if (std::find(kAnnotations.begin(), kAnnotations.end(), keyword) != kAnnotations.end()) continue;
      if (!apply(root, schema, keyword, rule, value, place)) {
        report(place, fmt::format("the schema uses `{}`, which is not understood here", keyword));
      }
    }
  }
  void report(const std::string& place, std::string_view problem) {
    found_.push_back(fmt::format("{}: {}", place.empty() ? "the document" : place, problem));
  }
  std::vector<std::string> found() && { return std::move(found_); }

 private:
  bool apply(const JsonValue& root, const JsonValue& schema, std::string_view keyword, const JsonValue& rule,
             const JsonValue& value, const std::string& place) {
    if (keyword == "type") {
      check_type(rule, value, place);
    } else if (keyword == "const") {
      if (!(value == rule)) report(place, fmt::format("expected {}", compact_json(rule)));
    } else if (keyword == "enum") {
      const auto& allowed = rule.items();
      if (std::find(allowed.begin(), allowed.end(), value) == allowed.end()) {
        report(place, fmt::format("found {}, expected one of {}", compact_json(value), compact_json(rule)));
      }
    } else if (keyword == "minimum" || keyword == "maximum") {
      const bool low = keyword == "minimum";
      if (value.is_number() && (low ? value.number() < rule.number() : value.number() > rule.number())) {
        report(place, fmt::format("found {}, {} {}", value.number(), keyword, rule.number()));
      }
    } else if (keyword == "required") {
      for (const JsonValue& key : rule.items()) {
        if (value.is_object() && value.find(key.text()) == nullptr) {
          report(place, fmt::format("`{}` is missing", key.text()));
        }
      }
    } else if (keyword == "properties") {
      if (!value.is_object()) return true;
      for (const auto& [key, of_key] : rule.members()) {
        if (const JsonValue* member = value.find(key)) check(root, of_key, *member, join(place, key));
      }
    } else if (keyword == "additionalProperties") {
      const JsonValue* listed = schema.find("properties");
      if (!value.is_object()) return true;
      for (const auto& [key, member] : value.members()) {
        if (listed != nullptr && listed->find(key) != nullptr) continue;
        check(root, rule, member, join(place, key));
      }
    } else if (keyword == "items") {
      if (!value.is_array()) return true;
      for (std::size_t i = 0; i < value.items().size(); ++i) {
        check(root, rule, value.items()[i], fmt::format("{}[{}]", place, i));
      }
    } else if (keyword == "anyOf") {
      check_any(root, rule, value, place);
    } else if (keyword == "$ref") {
      follow(root, rule.text(), value, place);
    } else {
      return false;
    }
    return true;
  }

  void check_type(const JsonValue& rule, const JsonValue& value, const std::string& place) {
    bool fits = rule.is_text() && is_type(value, rule.text());
    if (rule.is_array()) {
      for (const JsonValue& type : rule.items()) fits = fits || is_type(value, type.text());
    }
    if (!fits) report(place, fmt::format("found {}, expected {}", type_of(value), compact_json(rule)));
  }

  void check_any(const JsonValue& root, const JsonValue& rule, const JsonValue& value,
                 const std::string& place) {
    for (const JsonValue& option : rule.items()) {
      Validator one{folder_};
      one.check(root, option, value, place);
      if (one.found_.empty()) return;
    }
    report(place, "fits none of the possibilities");
  }

  void follow(const JsonValue& root, const std::string& reference, const JsonValue& value,
              const std::string& place) {
    constexpr std::string_view kHere = "#/$defs/";
    if (reference.starts_with(kHere)) {
      const JsonValue* definitions = root.find("$defs");
      const JsonValue* target =
          definitions == nullptr ? nullptr : definitions->find(reference.substr(kHere.size()));
      if (target == nullptr) return report(place, fmt::format("the schema has no {}", reference));
      return check(root, *target, value, place);
    }
    if (!files_.contains(reference)) {
      const Result<std::string> text = read_file(folder_ / reference);
      if (!text) return report(place, text.error().message());
      Result<JsonValue> parsed = parse_json(*text, reference);
      if (!parsed) return report(place, parsed.error().message());
      files_.emplace(reference, std::make_unique<JsonValue>(std::move(parsed).value()));
    }
    const JsonValue& other = *files_.at(reference);
    check(other, other, value, place);
  }

  static std::string join(const std::string& place, const std::string& key) {
    return place.empty() ? key : place + "." + key;
  }

  std::filesystem::path folder_;
  std::map<std::string, std::unique_ptr<JsonValue>> files_;
  std::vector<std::string> found_;
};

}  // namespace

std::vector<std::string> violations(std::string_view schema, std::string_view document,
                                    const std::filesystem::path& folder) {
  const Result<JsonValue> rules = parse_json(schema, "schema");
  if (!rules) return {rules.error().message()};
  JsonLimits limits;
  limits.max_bytes = std::size_t{1} << 28;
  limits.max_values = 20'000'000;
  const Result<JsonValue> value = parse_json(document, "document", limits);
  if (!value) return {value.error().message()};
  Validator validator{folder};
  validator.check(*rules, *rules, *value, "");
  return std::move(validator).found();
}

}  // namespace stepcast::fixtures
