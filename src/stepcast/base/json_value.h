// A JSON document as a tree in which each value knows its line. For documents that people write and that fit
// into memory: platform files and model parameters. Traces have their own streaming readers.
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

// A key with its value. It is a template because JsonValue contains vectors of it, so that it can only be
// complete after JsonValue.
template <class Value>
struct JsonMember {
  std::string key;
  Value value;
  friend bool operator==(const JsonMember&, const JsonMember&) = default;
};

// A part of a text that is parsed on first access (parse_known_json).
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
  // Whether this value is part of a text that is known to be valid and was not parsed yet.
  [[nodiscard]] bool is_deferred() const { return std::holds_alternative<Deferred>(data_); }
  // "a number", "an object", ...
  [[nodiscard]] std::string_view kind_name() const;

  // The content; only for a value of that kind.
  [[nodiscard]] bool truth() const { return std::get<bool>(data_); }
  [[nodiscard]] double number() const { return std::get<double>(data_); }
  [[nodiscard]] const std::string& text() const { return std::get<std::string>(data()); }
  [[nodiscard]] const Array& items() const { return std::get<Array>(data()); }
  [[nodiscard]] Array& items() { return std::get<Array>(own()); }
  [[nodiscard]] const Object& members() const { return std::get<Object>(data()); }

  // The member with this key. Null: no such member, or this is not an object. Linear in the number of members.
  [[nodiscard]] const JsonValue* find(std::string_view key) const;
  // All items as numbers; nothing if this is not an array or has an item of another kind.
  [[nodiscard]] std::optional<std::vector<double>> numbers() const;
  // Appends a member to an object, or an item to an array. This must be of that kind.
  JsonValue& add(std::string_view key, JsonValue value);
  JsonValue& add(JsonValue item);

  // Line of the text that the value was read from, starting at 1; 0 if it was not read from a text.
  [[nodiscard]] std::uint32_t line() const { return line_; }
  void set_line(std::uint32_t line) { line_ = line; }

  // Equal content. Lines are ignored, the order of members matters.
  friend bool operator==(const JsonValue& a, const JsonValue& b) { return a.data() == b.data(); }

 private:
  friend class DeferredJson;
  using Deferred = std::shared_ptr<const DeferredJson>;
  using Data = std::variant<std::monostate, bool, double, std::string, Array, Object, Deferred>;
  // The content, parsed if it was deferred.
  [[nodiscard]] const Data& data() const {
    const Deferred* deferred = std::get_if<Deferred>(&data_);
    return deferred == nullptr ? data_ : parsed(*deferred);
  }
  // The content for changes: replaces a deferred value by its parsed copy.
  [[nodiscard]] Data& own() {
    if (const Deferred* deferred = std::get_if<Deferred>(&data_)) data_ = Data{parsed(*deferred)};
    return data_;
  }
  static const Data& parsed(const Deferred& deferred);
  static char first_of(const Deferred& deferred);
  // Whether the value is of this kind. A deferred value is not parsed for it: `first` is the first character of the kind.
  template <class Kind>
  [[nodiscard]] bool is(char first) const {
    const Deferred* deferred = std::get_if<Deferred>(&data_);
    return deferred == nullptr ? std::holds_alternative<Kind>(data_) : first_of(*deferred) == first;
  }

  Data data_;
  std::uint32_t line_ = 0;
};

// Limits of parse_json(), against hostile or mistaken input.
struct JsonLimits {
  std::size_t max_bytes = std::size_t{1} << 24;
  std::size_t max_values = 2'000'000;
  int max_depth = 32;
};
// Parses a JSON text with an object or array at its root. `name` denotes the text in errors, which give the
// line. Errors: invalid JSON, a key twice in one object, a number that is not finite, a limit that is exceeded.
[[nodiscard]] Result<JsonValue> parse_json(std::string_view text, const std::string& name,
                                           const JsonLimits& limits = {});

// Position of a value in a text.
struct JsonStretch {
  std::uint32_t begin, size, lines;  // first byte, bytes, line breaks inside the value
};
// The long values of a valid document, in text order. The build stores them for the texts that are part of the program.
[[nodiscard]] Result<std::vector<JsonStretch>> long_json_values(std::string_view text,
                                                                const std::string& name);
// parse_json() for a text that is known to be valid, with its long values from long_json_values(). Long
// values are parsed on first access, from any thread. `long_values` must outlive the result.
[[nodiscard]] Result<JsonValue> parse_known_json(std::shared_ptr<const std::string> text,
                                                 std::span<const JsonStretch> long_values,
                                                 const std::string& name);

// The value on one line. Numbers are the shortest text that reads back as the same double; numbers that are
// not finite become null.
[[nodiscard]] std::string compact_json(const JsonValue& value);
// The value for people: two blanks per level, and values that fit on a line (110 columns) on one line. Ends
// with a line break.
[[nodiscard]] std::string pretty_json(const JsonValue& value);

}  // namespace stepcast
