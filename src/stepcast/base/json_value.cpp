#include "stepcast/base/json_value.h"

#include <algorithm>
#include <utility>

#include "stepcast/base/json_writer.h"

namespace stepcast {
namespace {

// Writes a tree with a JsonWriter.
void write(JsonWriter& json, const JsonValue& value) {
  if (value.is_null()) {
    json.null();
  } else if (value.is_bool()) {
    json.value(value.truth());
  } else if (value.is_number()) {
    json.value(value.number());
  } else if (value.is_text()) {
    json.value(value.text());
  } else if (value.is_array()) {
    json.begin_array();
    for (const JsonValue& item : value.items()) write(json, item);
    json.end_array();
  } else {
    json.begin_object();
    for (const JsonValue::Member& member : value.members()) {
      json.key(member.key);
      write(json, member.value);
    }
    json.end_object();
  }
}

// The value on one line in this layout.
std::string on_one_line(const JsonValue& value, JsonWriter::Layout layout) {
  JsonWriter json{layout};
  write(json, value);
  return std::move(json).text();
}

// Line width of pretty_json().
constexpr std::size_t kLineWidth = 110;

bool is_nested(const JsonValue& value) { return value.is_array() || value.is_object(); }

// Levels of containers: 0 for a number, 1 for [1, 2].
int depth_of(const JsonValue& value) {
  int deepest = 0;
  if (value.is_array())
    for (const JsonValue& item : value.items()) deepest = std::max(deepest, depth_of(item) + 1);
  else if (value.is_object())
    for (const JsonValue::Member& member : value.members())
      deepest = std::max(deepest, depth_of(member.value) + 1);
  return deepest;
}

// Appends the value in the layout of pretty_json(). `column`: where the value begins; `indent`: indentation of its line.
void append_pretty(std::string& out, const JsonValue& value, std::size_t indent, std::size_t column) {
  if (!is_nested(value)) {
    out += on_one_line(value, JsonWriter::Layout::spaced);
    return;
  }
  if (depth_of(value) <= 2) {  // deeper values are easier to read on several lines, even if one would suffice
    const std::string line = on_one_line(value, JsonWriter::Layout::spaced);
    if (column + line.size() < kLineWidth) {
      out += line;
      return;
    }
  }
  const std::string inside(indent + 2, ' ');
  if (value.is_array()) {
    out += '[';
    // Lists of plain items fill each line; lists of containers have one item per line.
    const bool plain = std::none_of(value.items().begin(), value.items().end(), is_nested);
    std::size_t at = kLineWidth;
    bool first = true;
    for (const JsonValue& item : value.items()) {
      if (!first) out += ',';
      std::string text;
      append_pretty(text, item, indent + 2, indent + 2);
      if (plain && !first && at + text.size() + 2 < kLineWidth) {  // fill lines with plain items
        out += ' ';
        at += 1;
      } else {
        out.append("\n").append(inside);
        at = inside.size();
      }
      out += text;
      at += text.size() + 1;
      first = false;
    }
    out.append("\n").append(indent, ' ').append("]");
    return;
  }
  out += '{';
  bool first = true;
  for (const JsonValue::Member& member : value.members()) {
    if (!first) out += ',';
    first = false;
    out.append("\n").append(inside);
    std::string key;
    append_json(key, member.key);
    key += ": ";
    out += key;
    append_pretty(out, member.value, indent + 2, indent + 2 + key.size());
  }
  out.append("\n").append(indent, ' ').append("}");
}

}  // namespace

// Words for error messages, with an article.
std::string_view JsonValue::kind_name() const {
  if (is_null()) return "null";
  if (is_bool()) return "true or false";
  if (is_number()) return "a number";
  if (is_text()) return "a text";
  if (is_array()) return "a list";
  return "an object";
}

// Linear search, because most objects are small and keep the order of the file.
const JsonValue* JsonValue::find(std::string_view key) const {
  if (!is_object()) return nullptr;
  for (const Member& member : members())
    if (member.key == key) return &member.value;
  return nullptr;
}

std::optional<std::vector<double>> JsonValue::numbers() const {
  if (!is_array()) return std::nullopt;
  std::vector<double> all;
  all.reserve(items().size());
  for (const JsonValue& item : items()) {
    if (!item.is_number()) return std::nullopt;
    all.push_back(item.number());
  }
  return all;
}

// Keys are not checked for repetition.
JsonValue& JsonValue::add(std::string_view key, JsonValue value) {
  std::get<Object>(own()).push_back({std::string{key}, std::move(value)});
  return *this;
}

JsonValue& JsonValue::add(JsonValue item) {
  std::get<Array>(own()).push_back(std::move(item));
  return *this;
}

std::string compact_json(const JsonValue& value) { return on_one_line(value, JsonWriter::Layout::compact); }

std::string pretty_json(const JsonValue& value) {
  std::string out;
  append_pretty(out, value, 0, 0);
  out += '\n';
  return out;
}

}  // namespace stepcast
