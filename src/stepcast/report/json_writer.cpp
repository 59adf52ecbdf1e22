#include "stepcast/report/json_writer.h"

#include <array>
#include <charconv>
#include <cmath>
#include <utility>

namespace stepcast {
namespace {

// Length of the UTF-8 sequence at the beginning of `text`, 0 if there is no valid one.
std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U; };
  const auto follows = [&](std::size_t i) { return (byte(i) & 0xC0U) == 0x80U; };
  const unsigned first = byte(0);
  if (first < 0x80U) return 1;
  if (first >= 0xC2U && first < 0xE0U) return follows(1) ? 2 : 0;
  if (first >= 0xE0U && first < 0xF0U) {
    if (!follows(1) || !follows(2)) return 0;
    if (first == 0xE0U && byte(1) < 0xA0U) return 0;   // overlong
    if (first == 0xEDU && byte(1) >= 0xA0U) return 0;  // a surrogate
    return 3;
  }
  if (first >= 0xF0U && first < 0xF5U) {
    if (!follows(1) || !follows(2) || !follows(3)) return 0;
    if (first == 0xF0U && byte(1) < 0x90U) return 0;
    if (first == 0xF4U && byte(1) >= 0x90U) return 0;
    return 4;
  }
  return 0;
}

}  // namespace

void JsonWriter::line() {
  if (layout_ != Layout::indented) return;
  text_ += '\n';
  text_.append(2 * has_entries_.size(), ' ');
}

void JsonWriter::before_value() {
  if (after_key_) {
    after_key_ = false;
    return;
  }
  if (has_entries_.empty()) return;
  if (has_entries_.back()) text_ += ',';
  has_entries_.back() = true;
  line();
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

JsonWriter& JsonWriter::close(char bracket) {
  const bool had_entries = has_entries_.back();
  has_entries_.pop_back();
  if (had_entries) line();
  text_ += bracket;
  return *this;
}

JsonWriter& JsonWriter::end_object() { return close('}'); }
JsonWriter& JsonWriter::end_array() { return close(']'); }

JsonWriter& JsonWriter::key(std::string_view name) {
  before_value();
  quote(name);
  text_ += layout_ == Layout::indented ? ": " : ":";
  after_key_ = true;
  return *this;
}

JsonWriter& JsonWriter::value(std::string_view text) {
  before_value();
  quote(text);
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
  if (!std::isfinite(number)) return null();
  before_value();
  if (number == 0) number = 0;  // no "-0"
  std::array<char, 32> buffer{};
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), number).ptr;
  text_.append(buffer.data(), end);
  return *this;
}

JsonWriter& JsonWriter::fixed(double number, int decimals) {
  if (!std::isfinite(number)) return null();
  before_value();
  std::array<char, 400> buffer{};  // the largest double has 309 digits before the point
  const auto end =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), number, std::chars_format::fixed, decimals)
          .ptr;
  std::string_view digits{buffer.data(), static_cast<std::size_t>(end - buffer.data())};
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

void JsonWriter::quote(std::string_view text) {
  constexpr std::string_view kHex = "0123456789abcdef";
  text_ += '"';
  while (!text.empty()) {
    const char c = text.front();
    const auto byte = static_cast<unsigned char>(c);
    std::size_t length = 1;
    if (c == '"' || c == '\\') {
      text_ += '\\';
      text_ += c;
    } else if (c == '\n') {
      text_ += "\\n";
    } else if (c == '\t') {
      text_ += "\\t";
    } else if (c == '\r') {
      text_ += "\\r";
    } else if (byte < 0x20 || byte == 0x7f) {
      text_ += "\\u00";
      text_ += kHex[byte >> 4U];
      text_ += kHex[byte & 0xFU];
    } else if (length = utf8_length(text); length == 0) {
      text_ += "\\ufffd";  // not UTF-8: JSON has no way to say these bytes
      length = 1;
    } else {
      text_ += text.substr(0, length);
    }
    text.remove_prefix(length);
  }
  text_ += '"';
}

std::string JsonWriter::take() { return std::exchange(text_, {}); }

std::string JsonWriter::text() && {
  if (layout_ == Layout::indented) text_ += '\n';
  return std::move(text_);
}

}  // namespace stepcast
