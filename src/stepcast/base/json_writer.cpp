#include "stepcast/base/json_writer.h"

#include <array>
#include <charconv>
#include <cmath>
#include <utility>

#include "stepcast/base/utf8.h"

namespace stepcast {
// Control characters and DEL are escaped, so that the text cannot control a terminal.
void append_json(std::string& out, std::string_view text) {
  constexpr std::string_view kHex = "0123456789abcdef";
  out += '"';
  while (!text.empty()) {
    const char c = text.front();
    const auto byte = static_cast<unsigned char>(c);
    std::size_t length = 1;
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (c == '\r') {
      out += "\\r";
    } else if (byte < 0x20 || byte == 0x7f) {
      out += "\\u00";
      out += kHex[byte >> 4U];
      out += kHex[byte & 0xFU];
    } else if (byte < 0x80) {
      out += c;
    } else if (length = utf8_length(text); length == 0) {
      out += "\\ufffd";  // not UTF-8: JSON cannot represent these bytes
      length = 1;
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(length);
  }
  out += '"';
}

void append_json(std::string& out, double number) {
  if (!std::isfinite(number)) {
    out += "null";
    return;
  }
  if (number == 0) number = 0;  // no "-0"
  std::array<char, 32> buffer{};
  char* const end = buffer.data() + buffer.size();
  constexpr double kExact = 1e15;  // integers below are written without an exponent
  if (std::abs(number) < kExact && number == std::floor(number))
    out.append(buffer.data(), std::to_chars(buffer.data(), end, static_cast<std::int64_t>(number)).ptr);
  else
    out.append(buffer.data(), std::to_chars(buffer.data(), end, number).ptr);
}

// In the indented layout, starts a line at the current depth.
void JsonWriter::new_line() {
  if (layout_ != Layout::indented) return;
  text_ += '\n';
  text_.append(2 * has_entries_.size(), ' ');
}

// Writes the comma and the line break that precede a value or key, unless a key was just written.
void JsonWriter::before_value() {
  if (after_key_) {
    after_key_ = false;
    return;
  }
  if (has_entries_.empty()) return;
  if (has_entries_.back()) text_ += layout_ == Layout::spaced ? ", " : ",";
  has_entries_.back() = true;
  new_line();
}

JsonWriter& JsonWriter::begin_object() {
  before_value();
  text_ += '{';
  has_entries_.push_back(false);
  return *this;
}

JsonWriter& JsonWriter::begin_array() {
  before_value();
  text_ += '[';
  has_entries_.push_back(false);
  return *this;
}

// An empty container stays on one line: [] or {}.
JsonWriter& JsonWriter::close(char bracket) {
  const bool had_entries = has_entries_.back();
  has_entries_.pop_back();
  if (had_entries) new_line();
  text_ += bracket;
  return *this;
}

JsonWriter& JsonWriter::end_object() { return close('}'); }
JsonWriter& JsonWriter::end_array() { return close(']'); }

// The comma is written by before_value(); `after_key_` prevents a second one before the value.
JsonWriter& JsonWriter::key(std::string_view name) {
  before_value();
  append_json(text_, name);
  text_ += layout_ == Layout::compact ? ":" : ": ";
  after_key_ = true;
  return *this;
}

JsonWriter& JsonWriter::value(std::string_view text) {
  before_value();
  append_json(text_, text);
  return *this;
}

JsonWriter& JsonWriter::value(bool truth) {
  before_value();
  text_ += truth ? "true" : "false";
  return *this;
}

JsonWriter& JsonWriter::null() {
  before_value();
  text_ += "null";
  return *this;
}

JsonWriter& JsonWriter::value(double number) {
  before_value();
  append_json(text_, number);
  return *this;
}

// std::to_chars is independent of the locale, unlike printf.
JsonWriter& JsonWriter::fixed(double number, int decimals) {
  if (!std::isfinite(number)) return null();
  before_value();
  std::array<char, 400> buffer{};  // the largest double has 309 digits before the point
  const auto end =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), number, std::chars_format::fixed, decimals)
          .ptr;
  std::string_view digits{buffer.data(), static_cast<std::size_t>(end - buffer.data())};
  // Small negative numbers round to "-0.00", which is written as "0.00".
  if (digits.starts_with('-') && digits.find_first_not_of("-0.") == std::string_view::npos)
    digits.remove_prefix(1);
  text_ += digits;
  return *this;
}

JsonWriter& JsonWriter::signed_value(std::int64_t number) {
  before_value();
  text_ += std::to_string(number);
  return *this;
}

JsonWriter& JsonWriter::unsigned_value(std::uint64_t number) {
  before_value();
  text_ += std::to_string(number);
  return *this;
}

// The state of open containers is kept; only the text is handed out.
std::string JsonWriter::take() { return std::exchange(text_, {}); }

std::string JsonWriter::text() && {
  if (layout_ == Layout::indented) text_ += '\n';
  return std::move(text_);
}

}  // namespace stepcast
