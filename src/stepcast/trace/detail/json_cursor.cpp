// The parts of the JSON reader that are not inline: escapes, integers, and times in any spelling of a number.
#include "stepcast/trace/detail/json_cursor.h"

#include <array>

#include "stepcast/base/text.h"

namespace stepcast::detail {
namespace {

// The value of four hexadecimal digits at the start of `text`; false if they are not.
bool parse_hex4(std::string_view text, std::uint32_t& out) {
  if (text.size() < 4) return false;
  out = 0;
  for (const char c : text.substr(0, 4)) {
    std::uint32_t digit = 0;
    if (is_digit(c))
      digit = static_cast<std::uint32_t>(c - '0');
    else if (c >= 'a' && c <= 'f')
      digit = static_cast<std::uint32_t>(c - 'a') + 10;
    else if (c >= 'A' && c <= 'F')
      digit = static_cast<std::uint32_t>(c - 'A') + 10;
    else
      return false;
    out = out * 16 + digit;
  }
  return true;
}

// Appends a code point in UTF-8.
void append_utf8(std::uint32_t code, std::string& out) {
  const auto put = [&out](std::uint32_t byte) { out += static_cast<char>(static_cast<unsigned char>(byte)); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xc0 | (code >> 6));
    put(0x80 | (code & 0x3f));
  } else if (code < 0x10000) {
    put(0xe0 | (code >> 12));
    put(0x80 | ((code >> 6) & 0x3f));
    put(0x80 | (code & 0x3f));
  } else {
    put(0xf0 | (code >> 18));
    put(0x80 | ((code >> 12) & 0x3f));
    put(0x80 | ((code >> 6) & 0x3f));
    put(0x80 | (code & 0x3f));
  }
}

// Takes "u" and its four digits from the front of `rest`. A high surrogate is combined with the low one after
// it, as in "\ud83d\ude00". A single surrogate becomes U+FFFD. False if there are no four digits.
bool take_unicode(std::string_view& rest, std::string& out) {
  std::uint32_t code = 0;
  if (!parse_hex4(rest.substr(1), code)) return false;
  rest.remove_prefix(5);
  if (code >= 0xd800 && code < 0xdc00) {
    std::uint32_t low = 0;
    if (rest.size() >= 6 && rest[0] == '\\' && rest[1] == 'u' && parse_hex4(rest.substr(2), low) &&
        low >= 0xdc00 && low < 0xe000) {
      rest.remove_prefix(6);
      code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
    } else {
      code = 0xfffd;
    }
  } else if (code >= 0xdc00 && code < 0xe000) {
    code = 0xfffd;
  }
  append_utf8(code, out);
  return true;
}

}  // namespace

bool unescape(std::string_view raw, std::string& out) {
  out.clear();
  std::string_view rest = raw;
  while (!rest.empty()) {
    const std::size_t plain = rest.find('\\');
    out += rest.substr(0, plain);
    if (plain == std::string_view::npos) return true;
    rest.remove_prefix(plain + 1);
    if (rest.empty()) return false;
    switch (rest.front()) {
      case '"': out += '"'; break;
      case '\\': out += '\\'; break;
      case '/': out += '/'; break;
      case 'b': out += '\b'; break;
      case 'f': out += '\f'; break;
      case 'n': out += '\n'; break;
      case 'r': out += '\r'; break;
      case 't': out += '\t'; break;
      case 'u':
        if (!take_unicode(rest, out)) return false;
        continue;
      default: return false;
    }
    rest.remove_prefix(1);
  }
  return true;
}

// Accepts values from -2^63 to 2^64 - 1; larger numbers and other texts give false.
bool parse_integer(std::string_view text, std::int64_t& out) {
  const bool negative = !text.empty() && text.front() == '-';
  if (negative) text.remove_prefix(1);
  if (text.empty() || text.size() > 20) return false;
  std::uint64_t value = 0;
  for (const char c : text) {
    if (!is_digit(c)) return false;
    const auto digit = static_cast<std::uint64_t>(c - '0');
    if (value > (UINT64_MAX - digit) / 10) return false;
    value = value * 10 + digit;
  }
  if (negative) {
    if (value > std::uint64_t{1} << 63) return false;
    value = ~value + 1;
  }
  out = static_cast<std::int64_t>(value);
  return true;
}

namespace {

// Accepts any spelling of a JSON number. Digits are collected without the decimal point; its position is
// moved by the exponent and by three places for nanoseconds.
TimeError parse_any_microseconds(std::string_view text, std::int64_t& nanoseconds) {
  std::array<char, 64> digits{};
  std::size_t count = 0;   // in `digits`, without leading zeros
  std::int64_t point = 0;  // number of digits before the decimal point
  bool any = false;
  bool fraction = false;
  const bool negative = !text.empty() && text.front() == '-';
  if (negative) text.remove_prefix(1);
  while (!text.empty() && (is_digit(text.front()) || (text.front() == '.' && !fraction))) {
    const char c = text.front();
    text.remove_prefix(1);
    if (c == '.') {
      fraction = true;
      continue;
    }
    any = true;
    if (c == '0' && count == 0) {
      if (fraction) --point;
      continue;
    }
    if (count < digits.size()) digits[count++] = c;  // further digits cannot change the result
    if (!fraction) ++point;
  }
  if (!any) return TimeError::not_a_number;
  if (!text.empty()) {
    if (text.front() != 'e' && text.front() != 'E') return TimeError::not_a_number;
    text.remove_prefix(1);
    if (!text.empty() && text.front() == '+') text.remove_prefix(1);
    std::int64_t exponent = 0;
    if (text.size() > 6 || !parse_integer(text, exponent)) return TimeError::not_a_number;
    point += exponent;
  }
  point += 3;
  if (count == 0 || point < 0) {
    nanoseconds = 0;
    return TimeError::none;
  }
  if (point > 19) return TimeError::out_of_range;
  std::uint64_t value = 0;  // 19 digits fit
  const auto places = static_cast<std::size_t>(point);
  for (std::size_t i = 0; i < places; ++i)
    value = value * 10 + (i < count ? static_cast<std::uint64_t>(digits[i] - '0') : 0);
  if (places < count && digits[places] >= '5') ++value;
  if (value > static_cast<std::uint64_t>(INT64_MAX)) return TimeError::out_of_range;
  nanoseconds = negative ? -static_cast<std::int64_t>(value) : static_cast<std::int64_t>(value);
  return TimeError::none;
}

}  // namespace

TimeError parse_microseconds(std::string_view text, std::int64_t& nanoseconds) {
  // Fast path for the usual spelling: up to 16 digits, optionally a point and up to three more.
  constexpr std::int64_t kSafe = INT64_MAX / 1000 - 1;
  std::int64_t value = 0;
  std::size_t i = 0;
  while (i < text.size() && i < 16 && is_digit(text[i])) value = value * 10 + (text[i++] - '0');
  if (i > 0 && value <= kSafe) {
    if (i == text.size()) {
      nanoseconds = value * 1000;
      return TimeError::none;
    }
    if (text[i] == '.' && text.size() - i <= 4 && text.size() - i > 1) {
      std::int64_t scale = 1000;
      std::size_t k = i + 1;
      for (; k < text.size() && is_digit(text[k]); ++k) {
        value = value * 10 + (text[k] - '0');
        scale /= 10;
      }
      if (k == text.size()) {
        nanoseconds = value * scale;
        return TimeError::none;
      }
    }
  }
  return parse_any_microseconds(text, nanoseconds);
}

}  // namespace stepcast::detail
