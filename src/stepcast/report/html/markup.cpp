#include "stepcast/report/html/markup.h"

#include <cmath>

#include <fmt/format.h>

#include "stepcast/base/utf8.h"

namespace stepcast {
namespace {

// U+FFFD, the replacement character.
constexpr unsigned kReplacement = 0xFFFD;

// The code point of a valid UTF-8 sequence of 1 to 4 bytes.
unsigned code_of(std::string_view sequence) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(sequence[i]); };
  switch (sequence.size()) {
    case 1: return byte(0);
    case 2: return (byte(0) & 0x1FU) << 6U | (byte(1) & 0x3FU);
    case 3: return (byte(0) & 0x0FU) << 12U | (byte(1) & 0x3FU) << 6U | (byte(2) & 0x3FU);
    default:
      return (byte(0) & 0x07U) << 18U | (byte(1) & 0x3FU) << 12U | (byte(2) & 0x3FU) << 6U |
             (byte(3) & 0x3FU);
  }
}

// Marks and overrides of the direction of text. Without this, a file name could rearrange the text around it.
bool turns_direction(unsigned code) {
  return code == 0x061CU || code == 0x200EU || code == 0x200FU || (code >= 0x202AU && code <= 0x202EU) ||
         (code >= 0x2066U && code <= 0x2069U);
}

// Code points that Unicode reserves for internal use; HTML does not allow them.
bool is_noncharacter(unsigned code) {
  return (code >= 0xFDD0U && code <= 0xFDEFU) || (code & 0xFFFEU) == 0xFFFEU;
}

// Appends one code point. Control characters become their symbols, such as U+2400.
void append_escaped(std::string& out, unsigned code, std::string_view sequence) {
  constexpr unsigned kControlPictures = 0x2400, kDeletePicture = 0x2421;
  switch (code) {
    case '&': out += "&amp;"; return;
    case '<': out += "&lt;"; return;
    case '>': out += "&gt;"; return;
    case '"': out += "&quot;"; return;
    case '\'': out += "&#39;"; return;
    case '\t':
    case '\n': out += static_cast<char>(code); return;
    default: break;
  }
  if (code < 0x20U)
    append_utf8(out, kControlPictures + code);
  else if (code == 0x7FU)
    append_utf8(out, kDeletePicture);
  else if ((code >= 0x80U && code < 0xA0U) || turns_direction(code) || is_noncharacter(code))
    append_utf8(out, kReplacement);
  else
    out += sequence;
}

}  // namespace

// Works code point by code point. A byte that begins no valid sequence is replaced alone, so the rest stays
// readable.
std::string escape_markup(std::string_view text) {
  std::string out;
  out.reserve(text.size() + text.size() / 8);
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    if (length == 0) {
      append_utf8(out, kReplacement);
      text.remove_prefix(1);
      continue;
    }
    const std::string_view sequence = text.substr(0, length);
    append_escaped(out, code_of(sequence), sequence);
    text.remove_prefix(length);
  }
  return out;
}

// One decimal is finer than a pixel of the picture at any usual size, and keeps pages small.
std::string coordinate(double value) {
  if (!std::isfinite(value)) return "0";
  std::string text = fmt::format("{:.1f}", value);
  if (text.ends_with(".0")) text.resize(text.size() - 2);
  return text == "-0" ? "0" : text;
}

void Markup::begin(std::string_view tag, Attributes attributes) {
  text_ += '<';
  text_ += tag;
  for (const Attribute& attribute : attributes) {
    text_ += ' ';
    text_ += attribute.name;
    text_ += "=\"";
    text_ += escape_markup(attribute.value);
    text_ += '"';
  }
}

Markup& Markup::open(std::string_view tag, Attributes attributes) {
  begin(tag, attributes);
  text_ += '>';
  open_.emplace_back(tag);
  return *this;
}

// Closing more elements than are open does nothing.
Markup& Markup::close() {
  if (open_.empty()) return *this;
  text_ += "</";
  text_ += open_.back();
  text_ += '>';
  open_.pop_back();
  return *this;
}

Markup& Markup::leaf(std::string_view tag, Attributes attributes) {
  begin(tag, attributes);
  text_ += "/>";
  return *this;
}

Markup& Markup::element(std::string_view tag, Attributes attributes, std::string_view text) {
  return open(tag, attributes).text(text).close();
}

Markup& Markup::text(std::string_view text) {
  text_ += escape_markup(text);
  return *this;
}

Markup& Markup::append(const Markup& other) {
  text_ += other.text_;
  return *this;
}

}  // namespace stepcast
