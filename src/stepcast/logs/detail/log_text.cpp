#include "stepcast/logs/detail/log_text.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <deque>
#include <stdexcept>

#include "stepcast/base/text.h"

namespace stepcast::detail {

namespace {

constexpr char kEscape = '\x1b';

bool is_blank(char c) { return c == ' ' || c == '\t'; }
bool is_parameter(char c) { return is_digit(c) || c == ';' || c == '?' || c == ':'; }

// Length of the escape sequence at the begin of `text`, or 0.
std::size_t escape_length(std::string_view text) {
  std::size_t at = 0;
  const bool escaped = text.front() == kEscape;
  if (escaped) ++at;
  if (at >= text.size()) return at;
  if (text[at] != '[') {
    if (!escaped) return 0;
    if (text[at] == ']') {  // a title, up to a bell
      const std::size_t end = text.find('\a', at);
      return end == std::string_view::npos ? text.size() : end + 1;
    }
    return at + 1;
  }
  std::size_t end = at + 1;
  while (end < text.size() && is_parameter(text[end])) ++end;
  if (end >= text.size()) return escaped ? end : 0;
  if (escaped) return end + 1;
  return text[end] == 'm' && end > at + 1 ? end + 1 : 0;
}

// "[rank0]:", "[default3]:", "12: ", "[1,0]<stdout>:"; its length, or 0.
std::size_t prefix_length(std::string_view line, std::optional<std::int32_t>& rank) {
  std::size_t at = 0;
  while (at < line.size() && is_blank(line[at])) ++at;
  const bool bracket = at < line.size() && line[at] == '[';
  std::size_t digits = at;
  if (bracket) {
    ++digits;
    while (digits < line.size() && ((lower(line[digits]) >= 'a' && lower(line[digits]) <= 'z') ||
                                    line[digits] == ' ' || line[digits] == '_'))
      ++digits;
    if (const std::size_t comma = line.find(',', digits); comma < digits + 8) {
      const bool number = std::all_of(line.begin() + static_cast<std::ptrdiff_t>(digits),
                                      line.begin() + static_cast<std::ptrdiff_t>(comma), is_digit);
      if (number) digits = comma + 1;  // job, rank
    }
  }
  std::int32_t value = 0;
  const auto read = std::from_chars(line.data() + digits, line.data() + line.size(), value);
  if (read.ec != std::errc{} || value < 0) return 0;
  auto end = static_cast<std::size_t>(read.ptr - line.data());
  if (bracket) {
    if (end >= line.size() || line[end] != ']') return 0;
    ++end;
    if (line.substr(end).starts_with("<stdout>") || line.substr(end).starts_with("<stderr>")) end += 8;
  }
  if (end >= line.size() || line[end] != ':') return 0;
  ++end;
  if (!bracket && (end >= line.size() || !is_blank(line[end]))) return 0;  // 12:30:01 is a time
  if (end < line.size() && is_blank(line[end])) ++end;
  rank = value;
  return end;
}

std::optional<int> two_digits(std::string_view text, std::size_t at) {
  if (at + 2 > text.size() || !is_digit(text[at]) || !is_digit(text[at + 1])) return std::nullopt;
  return (text[at] - '0') * 10 + (text[at + 1] - '0');
}

}  // namespace

std::string_view without_colours(std::string_view line, std::string& buffer) {
  if (line.find(kEscape) == std::string_view::npos &&
      line.find("m", line.find('[')) == std::string_view::npos)
    return line;
  bool changed = false;
  buffer.clear();
  for (std::size_t i = 0; i < line.size();) {
    const bool may_be = line[i] == kEscape || line[i] == '[';
    const std::size_t length = may_be ? escape_length(line.substr(i)) : 0;
    if (length > 0) {
      changed = true;
      i += length;
    } else {
      buffer += line[i++];
    }
  }
  return changed ? std::string_view{buffer} : line;
}

std::optional<std::int32_t> take_rank(std::string_view& line) {
  constexpr int kMost = 3;
  std::optional<std::int32_t> rank;
  for (int i = 0; i < kMost; ++i) {
    const std::size_t length = prefix_length(line, rank);
    if (length == 0) break;
    line.remove_prefix(length);
  }
  return rank;
}

std::optional<LoggedNumber> number_at(std::string_view text) {
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  constexpr std::size_t kLongest = 40;
  char digits[kLongest];
  std::size_t n = 0, after_point = 0;
  bool point = false, exponent = false;
  for (std::size_t i = 0; i < text.size() && n < kLongest; ++i) {
    const char c = text[i];
    if (is_digit(c)) {
      if (point && !exponent) ++after_point;
    } else if (c == '.' && !point && !exponent) {
      point = true;
    } else if ((c == 'e' || c == 'E') && n > 0 && !exponent) {
      exponent = true;
    } else if ((c == '-' || c == '+') && (n == 0 || digits[n - 1] == 'e' || digits[n - 1] == 'E')) {
      if (c == '+' && n == 0) continue;
    } else if (c == ',' && !point && !exponent && n > 0 && i + 3 < text.size() && is_digit(text[i + 1]) &&
               is_digit(text[i + 2]) && is_digit(text[i + 3])) {
      continue;  // thousands
    } else {
      break;
    }
    digits[n++] = c;
  }
  LoggedNumber number;
  const auto read = std::from_chars(digits, digits + n, number.value);
  if (read.ec != std::errc{} || !std::isfinite(number.value)) return std::nullopt;
  number.half_digit = 0.5 * std::pow(10.0, -static_cast<double>(after_point));
  if (exponent) {
    const char* e = std::find_if(digits, digits + n, [](char c) { return c == 'e' || c == 'E'; });
    int power = 0;
    const char* from = e < digits + n ? e + 1 : digits + n;
    if (from < digits + n && *from == '+') ++from;
    std::from_chars(from, digits + n, power);
    number.half_digit *= std::pow(10.0, power);
  }
  return number;
}

std::optional<std::string_view> text_behind(std::string_view line, std::string_view key) {
  const std::size_t at = line.find(key);
  if (at == std::string_view::npos) return std::nullopt;
  return line.substr(at + key.size());
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n";
  const std::size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

std::optional<LoggedNumber> number_behind(std::string_view line, std::string_view key) {
  const std::optional<std::string_view> text = text_behind(line, key);
  if (!text) return std::nullopt;
  const std::size_t from = text->find_first_not_of(" \t:='\"");
  return from == std::string_view::npos ? std::nullopt : number_at(text->substr(from));
}

std::optional<std::uint64_t> count_behind(std::string_view line, std::string_view key) {
  constexpr double kMost = 1e15;
  const auto number = number_behind(line, key);
  if (!number || number->value < 0 || number->value > kMost) return std::nullopt;
  return static_cast<std::uint64_t>(number->value);
}

std::optional<double> time_of_line(std::string_view line) {
  constexpr std::size_t kWithin = 64, kLength = 19;  // 2025-06-09 10:11:12
  const std::size_t end = std::min(line.size(), kWithin);
  for (std::size_t at = line.find("20");
       at != std::string_view::npos && at + kLength <= line.size() && at < end;
       at = line.find("20", at + 1)) {
    const std::string_view text = line.substr(at);
    if (text[4] != '-' || text[7] != '-' || (text[10] != ' ' && text[10] != 'T') || text[13] != ':' ||
        text[16] != ':')
      continue;
    const auto century = two_digits(text, 0), year = two_digits(text, 2), month = two_digits(text, 5),
               day = two_digits(text, 8), hour = two_digits(text, 11), minute = two_digits(text, 14),
               second = two_digits(text, 17);
    if (!century || !year || !month || !day || !hour || !minute || !second) continue;
    const std::chrono::year_month_day date{std::chrono::year{*century * 100 + *year},
                                           std::chrono::month{static_cast<unsigned>(*month)},
                                           std::chrono::day{static_cast<unsigned>(*day)}};
    if (!date.ok()) continue;
    const double days = static_cast<double>(std::chrono::sys_days{date}.time_since_epoch().count());
    double seconds = ((days * 24 + *hour) * 60 + *minute) * 60 + *second;
    double unit = 0.1;
    if (text.size() > kLength && (text[kLength] == ',' || text[kLength] == '.'))
      for (std::size_t i = kLength + 1; i < text.size() && is_digit(text[i]); ++i, unit /= 10)
        seconds += unit * (text[i] - '0');
    return seconds;
  }
  return std::nullopt;
}

MultiPatternMatcher::MultiPatternMatcher(std::span<const std::string_view> texts) {
  if (texts.size() > kMost) throw std::logic_error{"MultiPatternMatcher: raise kMost"};
  std::uint8_t n_classes = 1;
  for (const std::string_view text : texts) {
    for (const char c : text) {
      std::uint8_t& own = classes_[static_cast<unsigned char>(c)];
      if (own == 0) own = n_classes++;
    }
  }
  for (unsigned char c = 'A'; c <= 'Z'; ++c)
    classes_[c] = classes_[static_cast<unsigned char>(lower(static_cast<char>(c)))];
  while ((std::size_t{1} << shift_) < n_classes) ++shift_;
  const std::size_t width = std::size_t{1} << shift_;

  constexpr std::uint32_t kNone = 0;  // no edge of the trie leads to the root
  next_.assign(width, kNone);
  ends_.assign(1, {});
  for (std::size_t i = 0; i < texts.size(); ++i) {
    std::uint32_t state = 0;
    for (const char c : texts[i]) {
      std::uint32_t edge = next_[(state << shift_) + classes_[static_cast<unsigned char>(c)]];
      if (edge == kNone) {
        edge = static_cast<std::uint32_t>(ends_.size());
        next_[(state << shift_) + classes_[static_cast<unsigned char>(c)]] = edge;
        ends_.emplace_back();
        next_.resize(next_.size() + width, kNone);
      }
      state = edge;
    }
    ends_[state].set(i);
  }

  // Where a text breaks off, the longest end of it that begins another goes on.
  std::vector<std::uint32_t> fallback(ends_.size(), 0);
  std::deque<std::uint32_t> queue;
  for (std::size_t c = 0; c < width; ++c)
    if (next_[c] != kNone) queue.push_back(next_[c]);
  while (!queue.empty()) {
    const std::uint32_t state = queue.front();
    queue.pop_front();
    ends_[state] |= ends_[fallback[state]];
    for (std::size_t c = 0; c < width; ++c) {
      std::uint32_t& edge = next_[(state << shift_) + c];
      const std::uint32_t otherwise = next_[(fallback[state] << shift_) + c];
      if (edge == kNone) {
        edge = otherwise;
      } else {
        fallback[edge] = otherwise;
        queue.push_back(edge);
      }
    }
  }
  for (std::uint32_t& edge : next_) edge <<= shift_;
}

}  // namespace stepcast::detail
