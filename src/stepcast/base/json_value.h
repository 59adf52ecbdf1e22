// A JSON document as a tree that remembers its lines. For documents that people write and that fit into
// memory: platform files and the parameters of models. (Traces have readers of their own.)
//
//   STEPCAST_ASSIGN(const JsonValue root, parse_json(text, "my.json"));
//   if (const JsonValue* rate = root.find("rate_GBps"); rate && rate->is_number()) use(rate->number());
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "stepcast/base/result.h"

namespace stepcast {

// A key and its value in an object. A template only because JsonValue holds members of its own type: it is
// completed when JsonValue is.
template <class Value>
struct JsonMember {
  std::string key;
  Value value;
  friend bool operator==(const JsonMember&, const JsonMember&) = default;
};

// The text of a value that is parsed when it is first asked for (parse_known_json).
class DeferredJson;

class JsonValue {
 public:
  using Member = JsonMember<JsonValue>;
  using Array = std::vector<JsonValue>;
  using Object = std::vector<Member>;  // in the order of the file

  JsonValue() = default;  // null
  explicit JsonValue(bool truth) : data_(truth) {}
  explicit JsonValue(double number) : data_(number) {}
  explicit JsonValue(std::string text) : data_(std::move(text)) {}
  explicit JsonValue(std::string_view text) : data_(std::string{text}) {}
  explicit JsonValue(const char* text) : data_(std::string{text}) {}
  explicit JsonValue(Array items) : data_(std::move(items)) {}
  explicit JsonValue(Object members) : data_(std::move(members)) {}
  [[nodiscard]] static JsonValue object() { return JsonValue{Object{}}; }
  [[nodiscard]] static JsonValue array() { return JsonValue{Array{}}; }

  [[nodiscard]] bool is_null() const { return std::holds_alternative<std::monostate>(data_); }
  [[nodiscard]] bool is_bool() const { return std::holds_alternative<bool>(data_); }
  [[nodiscard]] bool is_number() const { return std::holds_alternative<double>(data_); }
  [[nodiscard]] bool is_text() const { return is<std::string>('"'); }
  [[nodiscard]] bool is_array() const { return is<Array>('['); }
  [[nodiscard]] bool is_object() const { return is<Object>('{'); }
  // Of a text that is known to be right, and not parsed yet.
  [[nodiscard]] bool is_deferred() const { return std::holds_alternative<Deferred>(data_); }
  // "a number", "an object", ...
  [[nodiscard]] std::string_view kind_name() const;

  // Only for a value of that kind.
  [[nodiscard]] bool truth() const { return std::get<bool>(data_); }
  [[nodiscard]] double number() const { return std::get<double>(data_); }
  [[nodiscard]] const std::string& text() const { return std::get<std::string>(data()); }
  [[nodiscard]] const Array& items() const { return std::get<Array>(data()); }
  [[nodiscard]] Array& items() { return std::get<Array>(own()); }
  [[nodiscard]] const Object& members() const { return std::get<Object>(data()); }

  // The member of an object; null pointer if there is none or this is no object.
  [[nodiscard]] const JsonValue* find(std::string_view key) const;
  // All items as numbers; nothing if this is no array or holds anything else.
  [[nodiscard]] std::optional<std::vector<double>> numbers() const;
  // Adds a member (or an item) to what must be an object (an array).
  JsonValue& add(std::string_view key, JsonValue value);
  JsonValue& add(JsonValue item);

  // Line of the text it was read from, from 1; 0 if it was not read.
  [[nodiscard]] std::uint32_t line() const { return line_; }
  void set_line(std::uint32_t line) { line_ = line; }

  // Same content; lines do not count, the order of members does.
  friend bool operator==(const JsonValue& a, const JsonValue& b) { return a.data() == b.data(); }

 private:
  friend class DeferredJson;
  using Deferred = std::shared_ptr<const DeferredJson>;
  using Data = std::variant<std::monostate, bool, double, std::string, Array, Object, Deferred>;
  [[nodiscard]] const Data& data() const {
    const Deferred* deferred = std::get_if<Deferred>(&data_);
    return deferred == nullptr ? data_ : parsed(*deferred);
  }
  [[nodiscard]] Data& own() {
    if (const Deferred* deferred = std::get_if<Deferred>(&data_)) data_ = Data{parsed(*deferred)};
    return data_;
  }
  static const Data& parsed(const Deferred& deferred);
  static char first_of(const Deferred& deferred);
  // Whether it is of that kind, which begins so.
  template <class Kind>
  [[nodiscard]] bool is(char first) const {
    const Deferred* deferred = std::get_if<Deferred>(&data_);
    return deferred == nullptr ? std::holds_alternative<Kind>(data_) : first_of(*deferred) == first;
  }

  Data data_;
  std::uint32_t line_ = 0;
};

struct JsonLimits {
  std::size_t max_bytes = std::size_t{1} << 24;
  std::size_t max_values = 2'000'000;
  int max_depth = 32;
};
// `name` stands for the text in errors, which give the line. A key twice in one object, a number that is not
// finite and whatever breaks a limit are errors.
[[nodiscard]] Result<JsonValue> parse_json(std::string_view text, const std::string& name,
                                           const JsonLimits& limits = {});

// A value of a text, by its place in it.
struct JsonStretch {
  std::uint32_t begin, size, lines;  // bytes; line breaks inside
};
// The long values of a valid document, in their order: what a build knows of the texts that ship.
[[nodiscard]] Result<std::vector<JsonStretch>> long_json_values(std::string_view text,
                                                                const std::string& name);
// parse_json() of a text that is known to be valid, and where its long values are: each is parsed when it is first asked for,
// by any thread. `long_values` must outlive the result.
[[nodiscard]] Result<JsonValue> parse_known_json(std::shared_ptr<const std::string> text,
                                                 std::span<const JsonStretch> long_values,
                                                 const std::string& name);

// On one line, numbers as the shortest text that reads back as the same double. What is not finite becomes
// null.
[[nodiscard]] std::string compact_json(const JsonValue& value);
// For people: two blanks per level; what fits into a line stays on it. Ends with a line break.
[[nodiscard]] std::string pretty_json(const JsonValue& value);

}  // namespace stepcast
