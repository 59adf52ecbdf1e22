#include "stepcast/base/json_value.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <numeric>

#include <fmt/format.h>
#include <simdjson.h>

namespace stepcast {
namespace {

using simdjson::ondemand::array;
using simdjson::ondemand::document;
using simdjson::ondemand::object;
using simdjson::ondemand::value;

// Walks a document once from left to right and keeps the line it is at.
class TreeBuilder {
 public:
  TreeBuilder(const simdjson::padded_string& text, const std::string& name, const JsonLimits& limits)
      : end_(text.data() + text.size()), position_(text.data()), name_(name), limits_(limits) {}

  Result<JsonValue> root(document& doc) {
    doc_ = &doc;
    std::string_view first;
    if (doc.raw_json_token().get(first) == simdjson::SUCCESS) move_to(first.data());
    JsonValue result;
    if (array items; doc.get_array().get(items) == simdjson::SUCCESS) {
      STEPCAST_ASSIGN(result, read_array(items, 1));
    } else if (object members; doc.get_object().get(members) == simdjson::SUCCESS) {
      STEPCAST_ASSIGN(result, read_object(members, 1));
    } else {
      return at_line("").found(quoted(first)).expected("an object that begins with '{'");
    }
    if (const char* rest = nullptr; doc.current_location().get(rest) == simdjson::SUCCESS) {
      move_to(rest);
      return at_line("more text behind the end of the document");
    }
    return result;
  }

 private:
  // simdjson's iterators do not go back, and neither does the line count.
  void move_to(const char* place) {
    if (place < position_ || place > end_) return;
    line_ += static_cast<std::uint32_t>(std::count(position_, place, '\n'));
    position_ = place;
  }

  [[nodiscard]] Error at_line(std::string problem) const {
    return Error::at(name_, fmt::format("line {}", line_), std::move(problem));
  }
  [[nodiscard]] Error broken(simdjson::error_code code) {
    if (const char* place = nullptr; doc_->current_location().get(place) == simdjson::SUCCESS) move_to(place);
    return at_line(fmt::format("not valid JSON ({})", simdjson::error_message(code)));
  }
  [[nodiscard]] static std::string quoted(std::string_view token) {
    while (!token.empty() && static_cast<unsigned char>(token.back()) <= ' ') token.remove_suffix(1);
    constexpr std::size_t kShown = 40;
    return token.size() > kShown ? fmt::format("`{}...`", token.substr(0, kShown))
                                 : fmt::format("`{}`", token);
  }

  Result<JsonValue> read(value& v, int depth) {
    if (++values_ > limits_.max_values) {
      return at_line("too many values").expected(fmt::format("at most {}", limits_.max_values));
    }
    const std::string_view token = v.raw_json_token();
    move_to(token.data());
    const std::uint32_t line = line_;
    auto result = read_here(v, token, depth);
    if (result.ok()) result.value().set_line(line);
    return result;
  }

  Result<JsonValue> read_here(value& v, std::string_view token, int depth) {
    const char first = token.empty() ? '\0' : token.front();
    if (first == '{' || first == '[') {
      if (depth >= limits_.max_depth) {
        return at_line("too deeply nested").expected(fmt::format("at most {} levels", limits_.max_depth));
      }
      if (first == '[') {
        array items;
        if (const auto code = v.get_array().get(items); code != simdjson::SUCCESS) return broken(code);
        return read_array(items, depth + 1);
      }
      object members;
      if (const auto code = v.get_object().get(members); code != simdjson::SUCCESS) return broken(code);
      return read_object(members, depth + 1);
    }
    if (first == '"') {
      std::string_view text;
      if (const auto code = v.get_string().get(text); code != simdjson::SUCCESS) return broken(code);
      return JsonValue{text};
    }
    if (first == '-' || (first >= '0' && first <= '9')) {
      double number = 0;
      const auto code = v.get_double().get(number);
      if (code != simdjson::SUCCESS || !std::isfinite(number)) {
        return at_line("").found(quoted(token)).expected("a finite number");
      }
      return JsonValue{number};
    }
    if (first == 't' || first == 'f') {
      bool truth = false;
      if (v.get_bool().get(truth) == simdjson::SUCCESS) return JsonValue{truth};
    } else if (first == 'n') {
      bool is_null = false;
      if (v.is_null().get(is_null) == simdjson::SUCCESS && is_null) return JsonValue{};
    }
    return at_line("").found(quoted(token)).expected("a JSON value; NaN and infinity are none");
  }

  Result<JsonValue> read_array(array& items, int depth) {
    JsonValue result = JsonValue::array();
    for (auto item : items) {
      value v;
      if (const auto code = item.get(v); code != simdjson::SUCCESS) return broken(code);
      STEPCAST_ASSIGN(JsonValue read_item, read(v, depth));
      result.add(std::move(read_item));
    }
    return result;
  }

  Result<JsonValue> read_object(object& members, int depth) {
    JsonValue result = JsonValue::object();
    for (auto field : members) {
      std::string_view key;
      if (const auto code = field.unescaped_key().get(key); code != simdjson::SUCCESS) return broken(code);
      std::string kept{key};
      value v;
      if (const auto code = field.value().get(v); code != simdjson::SUCCESS) return broken(code);
      STEPCAST_ASSIGN(JsonValue read_value, read(v, depth));
      result.add(kept, std::move(read_value));
    }
    STEPCAST_TRY(check_repeats(result.members()));
    return result;
  }

  [[nodiscard]] Status check_repeats(const JsonValue::Object& members) const {
    std::vector<std::size_t> order(members.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return members[a].key < members[b].key; });
    for (std::size_t i = 1; i < order.size(); ++i) {
      const JsonValue::Member& again = members[order[i]];
      const JsonValue::Member& before = members[order[i - 1]];
      if (again.key != before.key) continue;
      return Error::at(name_, fmt::format("line {}", again.value.line()),
                       fmt::format("`{}` stands here and in line {}", again.key, before.value.line()))
          .advice("remove one of them");
    }
    return Ok{};
  }

  document* doc_ = nullptr;
  const char* end_;
  const char* position_;
  const std::string& name_;
  const JsonLimits& limits_;
  std::uint32_t line_ = 1;
  std::size_t values_ = 0;
};

void append_number(std::string& out, double number) {
  if (!std::isfinite(number)) {
    out += "null";
    return;
  }
  if (number == 0) number = 0;  // no "-0"
  std::array<char, 32> buffer{};
  // Whole numbers as people write them, as long as that is exact.
  if (std::abs(number) < 1e15 && number == std::floor(number)) {
    const auto whole = static_cast<std::int64_t>(number);
    out.append(buffer.data(), std::to_chars(buffer.data(), buffer.data() + buffer.size(), whole).ptr);
    return;
  }
  out.append(buffer.data(), std::to_chars(buffer.data(), buffer.data() + buffer.size(), number).ptr);
}

void append_quoted(std::string& out, std::string_view text) {
  out += '"';
  for (const char c : text) {
    switch (c) {
      case '"': out += "\\\""; break;
      case '\\': out += "\\\\"; break;
      case '\n': out += "\\n"; break;
      case '\t': out += "\\t"; break;
      case '\r': out += "\\r"; break;
      default:
        if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
          out += fmt::format("\\u{:04x}", static_cast<unsigned>(static_cast<unsigned char>(c)));
        } else {
          out += c;
        }
    }
  }
  out += '"';
}

// `gap` stands behind ',' and ':'.
void append_compact(std::string& out, const JsonValue& value, std::string_view gap) {
  if (value.is_null()) {
    out += "null";
  } else if (value.is_bool()) {
    out += value.truth() ? "true" : "false";
  } else if (value.is_number()) {
    append_number(out, value.number());
  } else if (value.is_text()) {
    append_quoted(out, value.text());
  } else if (value.is_array()) {
    out += '[';
    bool first = true;
    for (const JsonValue& item : value.items()) {
      if (!first) out.append(",").append(gap);
      first = false;
      append_compact(out, item, gap);
    }
    out += ']';
  } else {
    out += '{';
    bool first = true;
    for (const JsonValue::Member& member : value.members()) {
      if (!first) out.append(",").append(gap);
      first = false;
      append_quoted(out, member.key);
      out.append(":").append(gap);
      append_compact(out, member.value, gap);
    }
    out += '}';
  }
}

constexpr std::size_t kLineWidth = 110;

bool is_nested(const JsonValue& value) { return value.is_array() || value.is_object(); }

// Depth below `value`: [1, 2] has 1.
int depth_of(const JsonValue& value) {
  int deepest = 0;
  if (value.is_array()) {
    for (const JsonValue& item : value.items()) deepest = std::max(deepest, depth_of(item) + 1);
  } else if (value.is_object()) {
    for (const JsonValue::Member& member : value.members())
      deepest = std::max(deepest, depth_of(member.value) + 1);
  }
  return deepest;
}

// `column` is where the value begins, `indent` how far its line is indented.
void append_pretty(std::string& out, const JsonValue& value, std::size_t indent, std::size_t column) {
  if (!is_nested(value)) {
    append_compact(out, value, " ");
    return;
  }
  if (depth_of(value) <= 2) {  // what nests deeper is easier to read on several lines even where it would fit
    std::string line;
    append_compact(line, value, " ");
    if (column + line.size() < kLineWidth) {
      out += line;
      return;
    }
  }
  const std::string inside(indent + 2, ' ');
  if (value.is_array()) {
    out += '[';
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
    append_quoted(key, member.key);
    key += ": ";
    out += key;
    append_pretty(out, member.value, indent + 2, indent + 2 + key.size());
  }
  out.append("\n").append(indent, ' ').append("}");
}

}  // namespace

std::string_view JsonValue::kind_name() const {
  if (is_null()) return "null";
  if (is_bool()) return "true or false";
  if (is_number()) return "a number";
  if (is_text()) return "a text";
  if (is_array()) return "a list";
  return "an object";
}

const JsonValue* JsonValue::find(std::string_view key) const {
  if (!is_object()) return nullptr;
  for (const Member& member : members()) {
    if (member.key == key) return &member.value;
  }
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

JsonValue& JsonValue::add(std::string_view key, JsonValue value) {
  std::get<Object>(data_).push_back({std::string{key}, std::move(value)});
  return *this;
}

JsonValue& JsonValue::add(JsonValue item) {
  std::get<Array>(data_).push_back(std::move(item));
  return *this;
}

Result<JsonValue> parse_json(std::string_view text, const std::string& name, const JsonLimits& limits) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);  // byte order mark
  if (text.size() > limits.max_bytes) {
    return Error::at(name, "", "too large")
        .found(fmt::format("{} bytes", text.size()))
        .expected(fmt::format("at most {}", limits.max_bytes));
  }
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos) {
    return Error::at(name, "", "").found("no content").expected("a JSON object");
  }
  const simdjson::padded_string padded{text};
  simdjson::ondemand::parser parser;
  document doc;
  if (const auto code = parser.iterate(padded).get(doc); code != simdjson::SUCCESS) {
    return Error::at(name, "", fmt::format("not valid JSON ({})", simdjson::error_message(code)));
  }
  return TreeBuilder{padded, name, limits}.root(doc);
}

std::string compact_json(const JsonValue& value) {
  std::string out;
  append_compact(out, value, "");
  return out;
}

std::string pretty_json(const JsonValue& value) {
  std::string out;
  append_pretty(out, value, 0, 0);
  out += '\n';
  return out;
}

}  // namespace stepcast
