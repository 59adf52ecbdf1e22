// Writes JSON text sequentially, without a tree in memory, with correct escapes and reproducible numbers.
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
// Numbers are the shortest text that reads back as the same double (integers below 1e15 without an exponent),
// or have fixed decimals. Numbers that are not finite become null. Texts are UTF-8: invalid bytes become
// U+FFFD, and control characters including DEL are escaped, so that the text cannot control a terminal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace stepcast {

// Append `text` in quotes with escapes, or a number.
void append_json(std::string& out, std::string_view text);
void append_json(std::string& out, double number);

class JsonWriter {
 public:
  enum class Layout : std::uint8_t {
    compact,   // no white space
    spaced,    // on one line, with a blank after ',' and ':'
    indented,  // two blanks per level, one entry per line
  };
  explicit JsonWriter(Layout layout = Layout::compact) : layout_(layout) {}

  // Containers. Each begin needs its end; the writer does not check the structure.
  JsonWriter& begin_object();
  JsonWriter& end_object();
  JsonWriter& begin_array();
  JsonWriter& end_array();
  // Names the next value of an object.
  JsonWriter& key(std::string_view name);

  // Values. nan and infinity become null.
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

  // key() and value() together. An empty optional becomes null.
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

  // The text since the last take(), for documents that are too long for memory.
  [[nodiscard]] std::string take();
  // The whole document. The indented layout ends with a line break.
  [[nodiscard]] std::string text() &&;

 private:
  JsonWriter& signed_value(std::int64_t number);
  JsonWriter& unsigned_value(std::uint64_t number);
  void before_value();
  void new_line();
  JsonWriter& close(char bracket);

  Layout layout_;
  std::string text_;
  std::vector<bool> has_entries_;  // for each open object or array: whether it has entries
  bool after_key_ = false;
};

}  // namespace stepcast
