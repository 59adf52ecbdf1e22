// Reads the tokens of one JSON value in memory from left to right, without building a tree.
//
//   JsonCursor c(text);
//   std::string_view key;
//   for (c.enter('{'); c.next_member(key);) {
//     if (key == "rank") c.integer(rank); else c.skip_value();
//   }
//   if (c.failed()) ...c.problem(), c.position()...
//
// JsonSplitter::kPadding bytes after the text must be readable. After an error every call returns false, so
// it is enough to check once after a loop.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace stepcast::detail {

// The content of a JSON string as written.
struct JsonText {
  std::string_view raw;
  bool escaped = false;  // contains backslashes
};

// Resolves escapes into `out`, which is replaced. False if an escape is invalid.
[[nodiscard]] bool unescape(std::string_view raw, std::string& out);

// The first quote or backslash in [p, end), or `end`. Reads up to 15 bytes beyond `end`.
inline const char* find_quote_or_backslash(const char* p, const char* end) {
#if defined(__SSE2__)
  const __m128i quote = _mm_set1_epi8('"');
  const __m128i backslash = _mm_set1_epi8('\\');
  for (; p < end; p += 16) {
    const __m128i v = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    const auto hits = static_cast<unsigned>(
        _mm_movemask_epi8(_mm_or_si128(_mm_cmpeq_epi8(v, quote), _mm_cmpeq_epi8(v, backslash))));
    if (hits != 0) {
      p += std::countr_zero(hits);
      return p < end ? p : end;
    }
  }
  return end;
#else
  while (p < end && *p != '"' && *p != '\\') ++p;
  return p;
#endif
}

// The position in a text, and the first error.
class JsonCursor {
 public:
  explicit JsonCursor(std::string_view text)
      : begin_(text.data()), p_(text.data()), end_(text.data() + text.size()) {}

  // True after the first error.
  [[nodiscard]] bool failed() const { return problem_ != nullptr; }
  // What was expected at the position of the error; null without an error.
  [[nodiscard]] const char* problem() const { return problem_; }
  // Position in the text in bytes.
  [[nodiscard]] std::size_t position() const { return static_cast<std::size_t>(p_ - begin_); }

  // The first character of the next value; 0 at the end.
  [[nodiscard]] char peek() {
    skip_space();
    return p_ < end_ ? *p_ : '\0';
  }
  // True if only white space is left.
  [[nodiscard]] bool at_end() { return peek() == '\0' && p_ >= end_; }

  // Enters an object or list; an error if the next value is of another kind.
  bool enter(char bracket) {
    if (peek() != bracket) return fail(bracket == '{' ? "an object" : "a list");
    ++p_;
    state_ = State::opened;
    return true;
  }

  // Moves to the value of the next member. False after the closing '}' or on an error. `key` is as written,
  // without resolving escapes.
  bool next_member(std::string_view& key) {
    if (!next_item('}')) return false;
    if (p_ >= end_ || *p_ != '"') return fail("a key in quotes");
    const char* const first = p_ + 1;
    const char* p = closing_quote(first);  // local, so that the position is written once
    if (p == nullptr) return fail("a closing quote");
    key = {first, static_cast<std::size_t>(p - first)};
    p = behind_space(p + 1);
    if (p >= end_ || *p != ':') {
      p_ = p;
      return fail("':'");
    }
    p_ = behind_space(p + 1);
    return true;
  }

  // Moves to the next element of a list. False after the closing ']' or on an error.
  bool next_element() { return next_item(']'); }

  // Reads a text; an error for other values.
  bool string(JsonText& out) {
    if (peek() != '"') return fail("a text");
    const char* const first = p_ + 1;
    const char* const last = closing_quote(first);
    if (last == nullptr) return fail("a closing quote");
    out.raw = {first, static_cast<std::size_t>(last - first)};
    out.escaped = escaped_;
    p_ = last + 1;
    state_ = State::value;
    return true;
  }

  // Reads the text of a number, true, false or null.
  bool scalar(std::string_view& out) {
    const char* const first = p_;
    const char* p = first;
    while (p < end_ && !ends_scalar(*p)) ++p;
    p_ = p;
    out = {first, static_cast<std::size_t>(p - first)};
    if (out.empty()) return fail("a value");
    state_ = State::value;
    return true;
  }

  // Skips any value without examining it.
  bool skip_value() {
    const char c = peek();
    if (c == '"') {
      JsonText ignored;
      return string(ignored);
    }
    if (c == '{' || c == '[') return skip_brackets();
    std::string_view ignored;
    return scalar(ignored);
  }

  // The text of any value.
  bool raw_value(std::string_view& out) {
    skip_space();
    const char* const first = p_;
    if (!skip_value()) return false;
    out = {first, static_cast<std::size_t>(p_ - first)};
    return true;
  }

  // Records an error (the first one counts) and returns false.
  bool fail(const char* expected) {
    if (problem_ == nullptr) problem_ = expected;
    if (p_ > end_) p_ = end_;
    return false;
  }

 private:
  // opened: directly after an opening bracket, so no comma is expected. value: after a value.
  enum class State : std::uint8_t { opened, value };

  // The first character from `p` on that is not white space, or the end.
  [[nodiscard]] const char* behind_space(const char* p) const {
    while (p < end_ && (*p == ' ' || *p == '\n' || *p == '\t' || *p == '\r')) ++p;
    return p;
  }
  void skip_space() { p_ = behind_space(p_); }

  // The quote that ends the string with content starting at `p`; null if there is none. Sets `escaped_` if
  // there were escapes.
  const char* closing_quote(const char* p) {
    escaped_ = false;
    for (;;) {
      p = find_quote_or_backslash(p, end_);
      if (p >= end_) return nullptr;
      if (*p == '"') return p;
      escaped_ = true;
      p += 2;
    }
  }

  static bool ends_scalar(char c) {
    return c == ',' || c == '}' || c == ']' || c == ' ' || c == '\n' || c == '\t' || c == '\r';
  }

  // Moves to the next item of an object or list, over a comma if needed.
  bool next_item(char closing) {
    if (problem_ != nullptr) return false;
    const char c = peek();
    if (c == closing) {
      ++p_;
      state_ = State::value;
      return false;
    }
    if (state_ == State::value) {
      if (c != ',') return fail("',' or a closing bracket");
      ++p_;
      skip_space();
    }
    if (p_ >= end_) return fail("a closing bracket");
    return true;
  }

  // Skips an object or list without recursion.
  bool skip_brackets() {
    std::uint32_t depth = 0;
    while (p_ < end_) {
      const char c = *p_++;
      if (c == '"') {
        const char* const last = closing_quote(p_);
        if (last == nullptr) return fail("a closing quote");
        p_ = last + 1;
      } else if (c == '{' || c == '[') {
        ++depth;
      } else if (c == '}' || c == ']') {
        if (--depth == 0) {
          state_ = State::value;
          return true;
        }
      } else if (c == '\\') {  // would hide a quote from JsonSplitter, so it is an error
        return fail("a value");
      }
    }
    return fail("a closing bracket");
  }

  const char* begin_;
  const char* p_;
  const char* end_;
  const char* problem_ = nullptr;
  bool escaped_ = false;  // of the last string
  State state_ = State::opened;
};

// Parses an integer, given as a JSON scalar or as the content of a text. Unsigned 64-bit values above the
// signed maximum wrap around; they are identifiers, and equal texts give equal values. False for anything
// else.
[[nodiscard]] bool parse_integer(std::string_view text, std::int64_t& out);

// Why a time could not be read.
enum class TimeError : std::uint8_t { none, not_a_number, out_of_range };
// Converts a decimal number of microseconds to nanoseconds exactly; further digits are rounded.
[[nodiscard]] TimeError parse_microseconds(std::string_view text, std::int64_t& nanoseconds);

// The numbers of "[1, 2, 3]", a list or the content of a text. False for anything else, such as a list
// shortened with "...".
template <class Int, class Vector>
[[nodiscard]] bool parse_integer_list(std::string_view text, Vector& out) {
  out.clear();
  const auto trim = [&text] {
    while (!text.empty() && (text.front() == ' ' || text.front() == '\n')) text.remove_prefix(1);
  };
  trim();
  if (text.empty() || text.front() != '[') return false;
  text.remove_prefix(1);
  trim();
  if (text == "]") return true;
  for (;;) {
    trim();
    const std::size_t end = text.find_first_of(",] ");
    std::int64_t value = 0;
    if (end == std::string_view::npos || !parse_integer(text.substr(0, end), value)) return false;
    out.push_back(static_cast<Int>(value));
    text.remove_prefix(end);
    trim();
    if (text.empty()) return false;
    const char c = text.front();
    text.remove_prefix(1);
    if (c == ']') return true;
    if (c != ',') return false;
  }
}

}  // namespace stepcast::detail
