// parse_json: a recursive-descent parser that makes one pass over the text, without tokens and without
// copying the text. Built-in texts are parsed lazily: a build step validates them and lists their long values
// (long_json_values), and parse_known_json() leaves these as DeferredJson until they are first read.

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stepcast/base/json_value.h"
#include "stepcast/base/text.h"
#include "stepcast/base/utf8.h"

namespace stepcast {

// A part of a valid text that contains one value. It is parsed on the first access, by whichever thread comes first.
class DeferredJson {
 public:
  DeferredJson(std::shared_ptr<const std::string> text, std::span<const JsonStretch> long_values,
               std::string_view value, std::uint32_t line)
      : text_(std::move(text)),
        long_values_(long_values),
        value_(value),
        first_(value.front()),
        line_(line) {}
  // First character of the value, which gives its kind without parsing.
  [[nodiscard]] char first() const { return first_; }
  [[nodiscard]] const JsonValue::Data& parsed() const {
    std::call_once(once_, [this] { parse(); });
    return parsed_.data_;
  }
  [[nodiscard]] static JsonValue value(std::shared_ptr<const DeferredJson> deferred) {
    JsonValue out;
    out.set_line(deferred->line_);
    out.data_ = std::move(deferred);
    return out;
  }

 private:
  void parse() const;

  mutable std::once_flag once_;
  mutable std::shared_ptr<const std::string> text_;  // contains `value_`; released after parsing
  std::span<const JsonStretch> long_values_;         // of the whole text
  std::string_view value_;
  char first_;  // a copy, because the text is released after parsing
  std::uint32_t line_;
  mutable JsonValue parsed_;
};

namespace {

bool is_blank(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }
// True for characters that may follow a number or word.
bool ends_token(char c) { return is_blank(c) || c == ',' || c == ']' || c == '}'; }
// Characters that a JSON string contains literally: ASCII without quotes, escapes and control characters.
constexpr auto kPlain = [] {
  std::array<bool, 256> plain{};
  for (std::size_t c = 0x20; c < 0x80; ++c) plain[c] = c != '"' && c != '\\';
  return plain;
}();

// Whether the next eight characters are all plain. Tests them as one 64-bit word.
bool plain_word(const char* at) {
  constexpr std::uint64_t kEach = 0x0101010101010101ULL, kTop = 0x80 * kEach;
  std::uint64_t word = 0;
  std::memcpy(&word, at, sizeof word);
  // Subtracting `limit` from each byte sets the top bit of bytes below it (a borrow may also mark a
  // neighbour, which only costs the slow path). XOR turns an equal byte into zero, which is then below 1.
  const auto below = [](std::uint64_t bytes, std::uint64_t limit) { return bytes - limit * kEach; };
  const std::uint64_t special =
      word | below(word, 0x20) | below(word ^ ('"' * kEach), 1) | below(word ^ ('\\' * kEach), 1);
  return (special & kTop) == 0;
}

// Limits for texts that are known to be valid.
constexpr JsonLimits kNoLimits{.max_bytes = SIZE_MAX, .max_values = SIZE_MAX, .max_depth = 1000};

// One instance parses one text. `text` and `name` must outlive it.
class JsonParser {
 public:
  JsonParser(std::string_view text, const std::string& name, const JsonLimits& limits)
      : at_(text.data()), end_(text.data() + text.size()), name_(name), limits_(limits) {}
  // Parses `stretch`, a part of `text`, and leaves the long values inside it deferred.
  JsonParser(std::shared_ptr<const std::string> text, std::span<const JsonStretch> long_values,
             std::string_view stretch, const std::string& name)
      : JsonParser(stretch, name, kNoLimits) {
    known_ = std::move(text);
    long_values_ = long_values;
  }
  // Parses a text and appends the positions of its long values to `long_values`.
  JsonParser(std::string_view text, const std::string& name, std::vector<JsonStretch>& long_values)
      : JsonParser(text, name, kNoLimits) {
    begin_ = text.data();
    listed_ = &long_values;
  }

  // The value at the current position, which begins in line `line`.
  JsonValue inner_value(std::uint32_t line) {
    line_ = line;
    JsonValue out;
    return value(out, 0) ? std::move(out) : JsonValue{};
  }

  // Parses the whole text: one object or array with nothing but blanks after it.
  Result<JsonValue> document() {
    skip_blanks();
    if (at_ == end_ || (*at_ != '{' && *at_ != '['))
      return at_line("").found(token()).expected("an object that begins with '{'");
    JsonValue root;
    if (!container(root, 1)) return std::move(*error_);
    skip_blanks();
    if (at_ != end_) return at_line("more text behind the end of the document").found(token());
    return root;
  }

 private:
  // The functions below return false after an error, which is then in `error_`.
  bool fail(Error error) {
    error_ = std::move(error);
    return false;
  }
  // An error at the current line.
  [[nodiscard]] Error at_line(std::string problem) const {
    return Error::at(name_, fmt::format("line {}", line_), std::move(problem));
  }
  // The token at the current position, cut to 40 characters for error messages.
  [[nodiscard]] std::string token() const {
    if (at_ == end_) return "the end of the text";
    constexpr std::ptrdiff_t kShown = 40;
    const char* last = at_;
    while (last != end_ && last - at_ < kShown && (last == at_ || !ends_token(*last))) ++last;
    const bool cut = last != end_ && last - at_ == kShown;
    return fmt::format("`{}{}`", std::string_view{at_, static_cast<std::size_t>(last - at_)},
                       cut ? "..." : "");
  }

  // Lines are counted here; strings cannot contain line breaks.
  void skip_blanks() {
    for (; at_ != end_ && is_blank(*at_); ++at_) line_ += *at_ == '\n' ? 1U : 0U;
  }

  // Counts a value; an error above the limit.
  bool count_value() {
    if (++values_ <= limits_.max_values) return true;
    return fail(at_line("too many values").expected(fmt::format("at most {}", limits_.max_values)));
  }

  // Parses one value at the current position. `depth`: number of containers around it.
  bool value(JsonValue& out, int depth) {
    if (!count_value()) return false;
    if (known_ && depth > 0 && deferred(out)) return true;
    if (listed_ != nullptr) return listed_value(out, depth);
    return present_value(out, depth);
  }

  // Parses the value here, without deferring it.
  bool present_value(JsonValue& out, int depth) {
    const char first = at_ == end_ ? '\0' : *at_;
    if (first == '"') {
      std::string content;
      if (!text(content)) return false;
      out = JsonValue{std::move(content)};
      out.set_line(line_);
      return true;
    }
    if (first == '-' || is_digit(first)) {
      double x = 0;
      if (!number(x)) return false;
      out = JsonValue{x};
      out.set_line(line_);
      return true;
    }
    if (first == '{' || first == '[') {
      if (depth >= limits_.max_depth) {
        return fail(
            at_line("too deeply nested").expected(fmt::format("at most {} levels", limits_.max_depth)));
      }
      return container(out, depth + 1);
    }
    // Whether the word `w` follows, and is not the beginning of a longer one.
    const auto word = [&](std::string_view w) {
      const std::string_view rest{at_, static_cast<std::size_t>(end_ - at_)};
      if (!rest.starts_with(w) ||
          (rest.size() > w.size() && std::isalnum(static_cast<unsigned char>(rest[w.size()])) != 0))
        return false;
      at_ += w.size();
      return true;
    };
    if (word("true"))
      out = JsonValue{true};
    else if (word("false"))
      out = JsonValue{false};
    else if (word("null"))
      out = JsonValue{};
    else
      return fail(at_line("").found(token()).expected("a JSON value; NaN and infinity are none"));
    out.set_line(line_);
    return true;
  }

  // Parses the value and records its position if it is long.
  bool listed_value(JsonValue& out, int depth) {
    const char* const from = at_;
    const std::uint32_t line = line_;
    const std::size_t place = listed_->size();
    listed_->push_back({static_cast<std::uint32_t>(from - begin_), 0, 0});
    if (!present_value(out, depth)) return false;
    // Parsing a shorter value costs less than keeping it deferred.
    constexpr std::ptrdiff_t kLong = 256;
    JsonStretch& stretch = (*listed_)[place];
    stretch.size = static_cast<std::uint32_t>(at_ - from);
    stretch.lines = line_ - line;
    // Drops the entries of inner values too, which are shorter.
    if (at_ - from < kLong) listed_->resize(place);
    return true;
  }

  // If a long value begins here, stores it deferred in `out`, moves past it and returns true.
  bool deferred(JsonValue& out) {
    const auto here = static_cast<std::uint32_t>(at_ - known_->data());
    const auto found = std::ranges::lower_bound(long_values_, here, {}, &JsonStretch::begin);
    if (found == long_values_.end() || found->begin != here) return false;
    out = DeferredJson::value(std::make_shared<const DeferredJson>(
        known_, long_values_, std::string_view{at_, found->size}, line_));
    at_ += found->size;
    line_ += found->lines;
    return true;
  }

  bool container(JsonValue& out, int depth) {
    const std::uint32_t line = line_;
    const bool is_object = *at_ == '{';
    ++at_;
    if (!(is_object ? object(out, depth, line) : array(out, depth, line))) return false;
    out.set_line(line);
    return true;
  }

  // After an entry: true if another entry follows; false after `close` or with an error. `opened` is the line
  // of the opening bracket.
  bool another(char close, std::uint32_t opened) {
    skip_blanks();
    if (at_ != end_ && *at_ == ',') {
      ++at_;
      skip_blanks();
      return true;
    }
    if (at_ != end_ && *at_ == close) {
      ++at_;
      return false;
    }
    return fail(at_line("not valid JSON")
                    .found(token())
                    .expected(fmt::format("',' or the '{}' that closes line {}", close, opened)));
  }
  // Before the first entry: true if there is one, false (and past `close`) if the container is empty.
  bool any(char close) {
    skip_blanks();
    if (at_ == end_ || *at_ != close) return true;
    ++at_;
    return false;
  }

  bool array(JsonValue& out, int depth, std::uint32_t line) {
    JsonValue::Array items;
    bool more = any(']');
    // Fast path: most lists consist of numbers. They are collected first, so that `items` is allocated once
    // in its final size.
    numbers_.clear();
    while (more && at_ != end_ && (is_digit(*at_) || *at_ == '-')) {
      if (!count_value()) return false;
      numbers_.push_back({0, line_});
      if (!number(numbers_.back().number)) return false;
      more = another(']', line);
    }
    items.reserve(numbers_.size() + (more ? 4 : 0));
    for (const auto& [x, its_line] : numbers_) items.emplace_back(x).set_line(its_line);
    for (; more; more = another(']', line))
      if (!value(items.emplace_back(), depth)) return false;
    if (error_) return false;
    out = JsonValue{std::move(items)};
    return true;
  }

  // An object after its opening bracket. Members keep their order.
  bool object(JsonValue& out, int depth, std::uint32_t line) {
    JsonValue::Object members;
    for (bool more = any('}'); more; more = another('}', line)) {
      if (at_ == end_ || *at_ != '"')
        return fail(at_line("not valid JSON").found(token()).expected("a key in double quotes"));
      JsonValue::Member& member = members.emplace_back();
      if (!text(member.key)) return false;
      skip_blanks();
      if (at_ == end_ || *at_ != ':') {
        return fail(
            at_line("not valid JSON").found(token()).expected(fmt::format("':' behind `{}`", member.key)));
      }
      ++at_;
      skip_blanks();
      if (!value(member.value, depth)) return false;
    }
    if (error_ || !check_repeats(members)) return false;
    out = JsonValue{std::move(members)};
    return true;
  }

  // The error for a repeated key, which names both lines.
  bool repeated(const JsonValue::Member& before, const JsonValue::Member& again) {
    return fail(Error::at(name_, fmt::format("line {}", again.value.line()),
                          fmt::format("`{}` is here and in line {}", again.key, before.value.line()))
                    .advice("remove one of them"));
  }

  // An error if a key occurs twice. Small objects are compared pairwise, larger ones are sorted first.
  bool check_repeats(const JsonValue::Object& members) {
    constexpr std::size_t kFew = 16;
    if (members.size() <= kFew) {
      for (std::size_t i = 1; i < members.size(); ++i) {
        for (std::size_t k = 0; k < i; ++k)
          if (members[i].key == members[k].key) return repeated(members[k], members[i]);
      }
      return true;
    }
    std::vector<std::size_t> order(members.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return members[a].key < members[b].key; });
    for (std::size_t i = 1; i < order.size(); ++i)
      if (members[order[i]].key == members[order[i - 1]].key)
        return repeated(members[order[i - 1]], members[order[i]]);
    return true;
  }

  // Parses a number. Fast path: integers of up to 15 digits, which are exact as double.
  bool number(double& out) {
    const char* p = at_;
    const bool negative = *p == '-';
    if (negative) ++p;
    const char* const leading = p;
    std::uint64_t whole = 0;  // not used if there are too many digits
    for (; p != end_ && is_digit(*p); ++p) whole = 10 * whole + static_cast<std::uint64_t>(*p - '0');
    const auto n_digits = p - leading;
    bool valid = n_digits == 1 || (n_digits > 1 && *leading != '0');
    if (valid && n_digits <= 15 && (p == end_ || ends_token(*p))) {  // whole and exact as a double
      out = negative ? -static_cast<double>(whole) : static_cast<double>(whole);
      at_ = p;
      return true;
    }
    // from_chars accepts "1.", JSON does not.
    if (valid && p != end_ && *p == '.') valid = p + 1 != end_ && is_digit(p[1]);
    if (valid) {
      const auto [last, code] = std::from_chars(at_, end_, out);
      // Out of range is either too large (an error) or too small (rounded to zero). from_chars does not say
      // which; strtod does.
      if (code == std::errc::result_out_of_range) out = std::strtod(std::string{at_, last}.c_str(), nullptr);
      p = last;
      valid = (p == end_ || ends_token(*p)) && std::isfinite(out);
    }
    if (!valid) return fail(at_line("").found(token()).expected("a finite number"));
    at_ = p;
    return true;
  }

  // Parses a string at its opening quote into `out`. Invalid UTF-8 is an error.
  bool text(std::string& out) {
    const std::uint32_t opened = line_;
    for (++at_; at_ != end_;) {
      const char* const from = at_;
      while (end_ - at_ >= 8 && plain_word(at_)) at_ += 8;
      while (at_ != end_ && kPlain[static_cast<unsigned char>(*at_)]) ++at_;
      out.append(from, at_);
      if (at_ == end_) break;
      const auto byte = static_cast<unsigned char>(*at_);
      if (byte == '"') {
        ++at_;
        return true;
      }
      if (byte == '\\') {
        if (!escape(out)) return false;
      } else if (byte < 0x20) {
        return fail(at_line("not valid JSON")
                        .found(byte == '\n' ? std::string{"a line break in a text"}
                                            : fmt::format("the byte 0x{:02x} in a text", byte))
                        .expected("'\"' at its end, or an escape such as \\n"));
      } else {
        const std::size_t length = utf8_length({at_, static_cast<std::size_t>(end_ - at_)});
        if (length == 0)
          return fail(at_line("a text that is not UTF-8").found(fmt::format("the byte 0x{:02x}", byte)));
        out.append(at_, length);
        at_ += length;
      }
    }
    return fail(at_line("not valid JSON")
                    .found("the end of the text")
                    .expected(fmt::format("'\"' at the end of the text that begins in line {}", opened)));
  }

  // Reads four hexadecimal digits at `at_` and moves past them; false if there are not four.
  bool hex(unsigned& out) {
    if (end_ - at_ < 4) return false;
    const auto [last, code] = std::from_chars(at_, at_ + 4, out, 16);
    if (code != std::errc{} || last != at_ + 4) return false;
    at_ += 4;
    return true;
  }

  // Parses an escape at `at_` and appends its characters. A surrogate pair becomes one code point; a lone
  // surrogate is an error.
  bool escape(std::string& out) {
    const char* const from = at_;
    const auto broken = [&] {
      at_ = from;
      return fail(at_line("not valid JSON").found(token()).expected("an escape such as \\n or \\u00e9"));
    };
    ++at_;
    if (at_ == end_) return broken();
    const char c = *at_++;
    constexpr std::string_view kNames = "\"\\/bfnrt", kMeant = "\"\\/\b\f\n\r\t";
    if (const std::size_t i = kNames.find(c); i != std::string_view::npos) {
      out += kMeant[i];
      return true;
    }
    unsigned code = 0;
    if (c != 'u' || !hex(code)) return broken();
    if (code >= 0xDC00 && code < 0xE000) return broken();
    if (code >= 0xD800 && code < 0xDC00) {  // the first half of a pair
      unsigned low = 0;
      if (end_ - at_ < 2 || at_[0] != '\\' || at_[1] != 'u') return broken();
      at_ += 2;
      if (!hex(low) || low < 0xDC00 || low >= 0xE000) return broken();
      code = 0x10000 + ((code - 0xD800) << 10U) + (low - 0xDC00);
    }
    append_utf8(out, code);
    return true;
  }

  const char* at_;
  const char* end_;
  // A valid text with deferred values; null: parse and check everything.
  std::shared_ptr<const std::string> known_;
  std::span<const JsonStretch> long_values_;  // of `known_`
  const char* begin_ = nullptr;               // start of the text while long values are listed
  std::vector<JsonStretch>* listed_ = nullptr;
  const std::string& name_;
  const JsonLimits& limits_;
  std::uint32_t line_ = 1;
  std::size_t values_ = 0;
  struct NumberAt {
    double number;
    std::uint32_t line;
  };
  std::vector<NumberAt> numbers_;  // buffer of array(), reused by all lists
  std::optional<Error> error_;
};

}  // namespace

// Moving the text out releases it when this value was the last that needed it.
void DeferredJson::parse() const {
  const std::string unnamed;
  parsed_ = JsonParser{std::move(text_), long_values_, value_, unnamed}.inner_value(line_);
}

const JsonValue::Data& JsonValue::parsed(const Deferred& deferred) { return deferred->parsed(); }

char JsonValue::first_of(const Deferred& deferred) { return deferred->first(); }

Result<std::vector<JsonStretch>> long_json_values(std::string_view text, const std::string& name) {
  std::vector<JsonStretch> values;
  STEPCAST_TRY(JsonParser(text, name, values).document());
  return values;
}

Result<JsonValue> parse_known_json(std::shared_ptr<const std::string> text,
                                   std::span<const JsonStretch> long_values, const std::string& name) {
  const std::string_view all = *text;
  return JsonParser{std::move(text), long_values, all, name}.document();
}

Result<JsonValue> parse_json(std::string_view text, const std::string& name, const JsonLimits& limits) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);  // byte order mark
  if (text.size() > limits.max_bytes) {
    return Error::at(name, "", "too large")
        .found(fmt::format("{} bytes", text.size()))
        .expected(fmt::format("at most {}", limits.max_bytes));
  }
  if (std::all_of(text.begin(), text.end(), is_blank))
    return Error::at(name, "", "").found("no content").expected("a JSON object");
  return JsonParser{text, name, limits}.document();
}

}  // namespace stepcast
