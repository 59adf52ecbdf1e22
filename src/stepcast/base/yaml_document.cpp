#include "stepcast/base/yaml_document.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <exception>
#include <utility>

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include "stepcast/base/scan.h"

namespace stepcast {
namespace {

// Converts a yaml-cpp tree into JsonValues with lines. yaml-cpp has resolved aliases already, so `values_`
// counts each use of an anchor, which bounds documents that expand exponentially.
class YamlConverter {
 public:
  explicit YamlConverter(const std::string& name) : name_(name) {}

  Result<JsonValue> node(const YAML::Node& from, int depth) {
    constexpr int kMostLevels = 32, kMostValues = 100'000;
    if (depth > kMostLevels || ++values_ > kMostValues) {
      return error(from, depth > kMostLevels ? "too deeply nested" : "too many values")
          .expected(fmt::format("at most {} levels and {} values", kMostLevels, kMostValues));
    }
    JsonValue result;
    if (from.IsMap()) {
      STEPCAST_ASSIGN(result, mapping(from, depth));
    } else if (from.IsSequence()) {
      result = JsonValue::array();
      for (const YAML::Node& item : from) {
        STEPCAST_ASSIGN(JsonValue converted, node(item, depth + 1));
        result.add(std::move(converted));
      }
    } else if (from.IsScalar()) {
      // The tag "?" marks plain scalars; quoted ones are always texts.
      result = from.Tag() == "?" ? plain(from.Scalar()) : JsonValue{from.Scalar()};
    }
    result.set_line(line_of(from));
    return result;
  }

 private:
  static std::uint32_t line_of(const YAML::Node& node) {
    return static_cast<std::uint32_t>(std::max(node.Mark().line, 0)) + 1;
  }
  Error error(const YAML::Node& at, std::string what) const {
    return Error::at(name_, fmt::format("line {}", line_of(at)), std::move(what));
  }

  Result<JsonValue> mapping(const YAML::Node& from, int depth) {
    JsonValue::Object members;
    // Sets a key. A repeated key replaces the value; a merged one ("<<") does not.
    const auto put = [&](std::string_view key, JsonValue value, bool replaces) {
      for (JsonValue::Member& member : members) {
        if (member.key != key) continue;
        if (replaces) member.value = std::move(value);
        return;
      }
      members.push_back({std::string{key}, std::move(value)});
    };
    constexpr std::size_t kMostKeys = 2000;  // per mapping, because each key is compared with all before it
    if (from.size() > kMostKeys)
      return error(from, "too many keys in one mapping").expected(fmt::format("at most {}", kMostKeys));
    for (const auto& entry : from) {
      if (!entry.first.IsScalar()) return error(entry.first, "a key that is not a word");
      STEPCAST_ASSIGN(JsonValue converted, node(entry.second, depth + 1));
      if (entry.first.Scalar() != "<<" || !converted.is_object()) {
        put(entry.first.Scalar(), std::move(converted), true);
        continue;
      }
      for (const JsonValue::Member& merged : converted.members()) put(merged.key, merged.value, false);
    }
    return JsonValue{std::move(members)};
  }

  // A plain scalar as null, truth value, number or text, by the rules of YAML 1.1. Underscores in numbers are ignored.
  static JsonValue plain(const std::string& text) {
    const auto is_one_of = [&](std::initializer_list<std::string_view> words) {
      return std::find(words.begin(), words.end(), text) != words.end();
    };
    if (is_one_of({"", "~", "null", "Null", "NULL"})) return {};
    if (is_one_of({"true", "True", "TRUE", "yes", "Yes", "on", "On"})) return JsonValue{true};
    if (is_one_of({"false", "False", "FALSE", "no", "No", "off", "Off"})) return JsonValue{false};
    std::string digits = text.substr(text.front() == '+' ? 1 : 0);
    std::erase(digits, '_');
    const std::optional<double> number = scan<double>(digits);
    const bool is_number = number && std::isfinite(*number);
    return is_number && text.front() != '_' ? JsonValue{*number} : JsonValue{text};
  }

  const std::string& name_;
  int values_ = 0;
};

// Adds the leaves below `path` to `out`.
void add_scalars(const JsonValue& value, const std::string& path, YamlScalars& out) {
  if (value.is_object())
    for (const JsonValue::Member& member : value.members())
      add_scalars(member.value, path.empty() ? member.key : path + "." + member.key, out);
  else if (!path.empty())
    out.insert_or_assign(path, value.is_text() ? value.text() : compact_json(value));
}

}  // namespace

YamlScalars yaml_scalars(const JsonValue& document) {
  YamlScalars scalars;
  add_scalars(document, "", scalars);
  return scalars;
}

Result<JsonValue> parse_yaml(std::string_view text, const std::string& name) {
  constexpr std::size_t kMostBytes = std::size_t{1} << 20;
  if (text.size() > kMostBytes)
    return Error::at(name, "", "too large").expected("a YAML file of at most 1 MiB");
  // yaml-cpp reports errors by exceptions; none leaves this function.
  try {
    return YamlConverter{name}.node(YAML::Load(std::string{text}), 1);
  } catch (const YAML::Exception& exception) {
    return Error::at(name, fmt::format("line {}", std::max(exception.mark.line, 0) + 1),
                     fmt::format("not valid YAML ({})", exception.msg));
  } catch (const std::exception& exception) {
    return Error::at(name, "", fmt::format("not valid YAML ({})", exception.what()));
  }
}

}  // namespace stepcast
