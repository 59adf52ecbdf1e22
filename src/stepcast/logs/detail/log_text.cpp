// Numbers, dates and text search in log lines. The search is an Aho-Corasick automaton in a flat table, since
// every byte of a log passes through it.
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

bool is_blank(char c) { return c == ' ' || c == '\t'; }
bool is_any_letter(char c) { return lower(c) >= 'a' && lower(c) <= 'z'; }

// The number with exactly `n` digits at position `at`; empty if there are other characters.
std::optional<int> digits_at(std::string_view text, std::size_t at, std::size_t n) {
  if (at > text.size() || text.size() - at < n) return std::nullopt;
  int value = 0;
  for (const char c : text.substr(at, n)) {
    if (!is_digit(c)) return std::nullopt;
    value = value * 10 + (c - '0');
  }
  return value;
}

// Days since 1970 of the date at the end of `text`; empty if there is no date. See time_of_line() for the
// forms.
std::optional<double> days_before(std::string_view text) {
  constexpr int kNoYear = 2000, kCentury = 2000;
  const auto number = [&](std::size_t from_end, std::size_t n) -> std::optional<int> {
    return from_end <= text.size() ? digits_at(text, text.size() - from_end, n) : std::nullopt;
  };
  const auto character = [&](std::size_t from_end) {
    return from_end <= text.size() ? text[text.size() - from_end] : '\0';
  };
  const auto days = [](int year, int month, int day) -> std::optional<double> {
    if (year < 1970 || month < 1 || day < 1) return std::nullopt;
    const std::chrono::year_month_day date{std::chrono::year{year},
                                           std::chrono::month{static_cast<unsigned>(month)},
                                           std::chrono::day{static_cast<unsigned>(day)}};
    if (!date.ok()) return std::nullopt;
    return static_cast<double>(std::chrono::sys_days{date}.time_since_epoch().count());
  };
  // Month and day in the American order, unless the first number is larger than 12.
  const auto month_and_day = [&](int year, int a, int b) {
    return a > 12 ? days(year, b, a) : days(year, a, b);
  };
  const char between = character(3);
  const auto last = number(2, 2), middle = number(5, 2), first = number(10, 4);
  if (between == '-' || between == '/') {
    if (last && middle && first && character(6) == between) return days(*first, *middle, *last);
    if (between == '-') return std::nullopt;
    const auto month = number(8, 2);
    if (last && middle && month && character(6) == '/')
      return month_and_day(kCentury + *last, *month, *middle);
    if (last && middle) return month_and_day(kNoYear, *middle, *last);
    return std::nullopt;
  }
  if (const auto year = number(4, 4), day = number(7, 2), month = number(10, 2);
      year && day && month && character(5) == '/' && character(8) == '/')
    return month_and_day(*year, *month, *day);
  if (const auto month = number(4, 2); month && last && is_any_letter(character(5)))
    return days(kNoYear, *month, *last);
  constexpr std::string_view kMonths = "JanFebMarAprMayJunJulAugSepOctNovDec";
  const std::size_t at = text.size() < 6 ? kMonths.size() : kMonths.find(text.substr(text.size() - 6, 3));
  const auto day = character(2) == ' ' ? number(1, 1) : last;
  if (between == ' ' && at < kMonths.size() && at % 3 == 0 && day)
    return days(kNoYear, static_cast<int>(at / 3) + 1, *day);
  return std::nullopt;
}

}  // namespace

// Copies the digits without separators of thousands and converts them. The rounding follows from the number
// of digits after the decimal point and the exponent.
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
      continue;  // separator of thousands
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

// Searches "HH:MM:SS" after a blank or 'T' near the start of the line, then a date directly in front of it.
std::optional<double> time_of_line(std::string_view line) {
  constexpr std::size_t kWithin = 64, kLength = 8;  // 10:11:12
  const std::size_t end = std::min(line.size(), kWithin);
  for (std::size_t colon = line.find(':'); colon < end; colon = line.find(':', colon + 1)) {
    if (colon < 3 || (line[colon - 3] != ' ' && line[colon - 3] != 'T')) continue;
    const std::string_view text = line.substr(colon - 2);
    const auto hour = digits_at(text, 0, 2), minute = digits_at(text, 3, 2), second = digits_at(text, 6, 2);
    if (!hour || !minute || !second || text[5] != ':') continue;
    const auto days = days_before(line.substr(0, colon - 3));
    if (!days) continue;
    double seconds = ((*days * 24 + *hour) * 60 + *minute) * 60 + *second;
    double unit = 0.1;
    if (text.size() > kLength && (text[kLength] == ',' || text[kLength] == '.'))
      for (std::size_t i = kLength + 1; i < text.size() && is_digit(text[i]); ++i, unit /= 10)
        seconds += unit * (text[i] - '0');
    return seconds;
  }
  return std::nullopt;
}

// Builds a trie of the texts, then adds failure links. Bytes that occur in no text share one class, which
// keeps the table small.
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

  // Failure links of the automaton: for each state, the longest suffix that is a prefix of another text.
  // Breadth first, so that the link of a state is complete before its successors are visited. Missing edges
  // are replaced by those of the link, so that a search takes one step per byte.
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
  // States are stored as row offsets, which saves a shift per byte.
  for (std::uint32_t& edge : next_) edge <<= shift_;
}

}  // namespace stepcast::detail
