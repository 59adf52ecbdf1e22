// Writes JSON text piece by piece: correct escaping, stable numbers, no tree in memory.
//
//   JsonWriter json;
//   json.begin_object();
//   json.field("step_time_ms", 12.5);
//   json.key("ranks").begin_array();
//   for (...) json.value(rank);
//   json.end_array();
//   json.end_object();
//   std::string text = std::move(json).text();
//
// Numbers are written as the shortest text that reads back as the same double (whole ones below 1e15 without an
// exponent), or with fixed decimals; what is not finite becomes null. Texts are UTF-8: a byte that is not becomes
// U+FFFD, and control characters, DEL among them, are escaped, so that nothing reaches a terminal that moves it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace stepcast {

// `text` in quotes.
void append_json(std::string& out, std::string_view text);
void append_json(std::string& out, double number);

class JsonWriter {
 public:
  enum class Layout : std::uint8_t {
    compact,   // no white space
    spaced,    // on one line, with a blank behind ',' and ':'
    indented,  // two blanks per level, one entry per line
  };
  explicit JsonWriter(Layout layout = Layout::compact) : layout_(layout) {}

  JsonWriter& begin_object();
  JsonWriter& end_object();
  JsonWriter& begin_array();
  JsonWriter& end_array();
  // Names the next value of an object.
  JsonWriter& key(std::string_view name);

  JsonWriter& value(std::string_view text);
  JsonWriter& value(const char* text) { return value(std::string_view{text}); }
  JsonWriter& value(bool truth);
  JsonWriter& value(double number);
  template <class Integer>
    requires std::is_integral_v<Integer>
  JsonWriter& value(Integer number) {
    if constexpr (std::is_signed_v<Integer>)
      return signed_value(static_cast<std::int64_t>(number));
    else
      return unsigned_value(static_cast<std::uint64_t>(number));
  }
  // `decimals` places after the point.
  JsonWriter& fixed(double number, int decimals);
  JsonWriter& null();

  template <class Value>
  JsonWriter& field(std::string_view name, const Value& v) {
    key(name);
    return value(v);
  }
  JsonWriter& fixed_field(std::string_view name, double number, int decimals) {
    key(name);
    return fixed(number, decimals);
  }
  template <class Value>
  JsonWriter& field(std::string_view name, const std::optional<Value>& v) {
    key(name);
    return v ? value(*v) : null();
  }

  // What was written since the last take(): for documents that are too long to be kept.
  [[nodiscard]] std::string take();
  // The whole document, ended by a line break where the layout has lines.
  [[nodiscard]] std::string text() &&;

 private:
  JsonWriter& signed_value(std::int64_t number);
  JsonWriter& unsigned_value(std::uint64_t number);
  void before_value();
  void new_line();
  JsonWriter& close(char bracket);

  Layout layout_;
  std::string text_;
  std::vector<bool> has_entries_;  // [open object or array]
  bool after_key_ = false;
};

}  // namespace stepcast
