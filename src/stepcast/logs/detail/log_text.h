// Small pieces of a line of a training log: numbers and points in time. What launchers and terminals add is base/line_prefix.h.
#pragma once

#include <array>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace stepcast::detail {

// A number as logs print it: "4,376", "1.249e+03", "12.5".
struct LoggedNumber {
  double value = 0;
  double half_digit = 0;  // half a unit of the last digit that is printed
};

// The number behind blanks at the begin of `text`; nothing where there is none.
[[nodiscard]] std::optional<LoggedNumber> number_at(std::string_view text);
// The number behind the first `key`; blanks, quotes, ':' and '=' may stand between.
[[nodiscard]] std::optional<LoggedNumber> number_behind(std::string_view line, std::string_view key);
// The same as a whole number from 0 on.
[[nodiscard]] std::optional<std::uint64_t> count_behind(std::string_view line, std::string_view key);
// What stands behind the first `key`; nothing where it is not there.
[[nodiscard]] std::optional<std::string_view> text_behind(std::string_view line, std::string_view key);
[[nodiscard]] std::string_view trimmed(std::string_view text);

// Seconds since 1970 of the first date with a time in the first bytes of a line; zones do not count: "2025-06-09 10:11:12,123",
// "2025-10-17T11:33:02", "2025/06/09 10:11:12", "06/09/2025 10:11:12", "06/09/25 10:11:12". Dates without a year are of 2000:
// "I0609 10:11:12.123456", "Jun 09 10:11:12", "06/09 10:11:12".
[[nodiscard]] std::optional<double> time_of_line(std::string_view line);

// Which of a few fixed texts a line holds, in one pass over it whatever their number (Aho and Corasick 1975).
// ASCII letters count as lower case.
class MultiPatternMatcher {
 public:
  static constexpr std::size_t kMost = 128;
  using Found = std::bitset<kMost>;  // bit i: text i

  // None of the texts is empty, all are in lower case. More than kMost are a mistake of ours: std::logic_error.
  explicit MultiPatternMatcher(std::span<const std::string_view> texts);

  [[nodiscard]] Found found_in(std::string_view line) const {
    Found found;
    std::uint32_t at = 0;  // a row of the table
    for (const char c : line) {
      at = next_[at + classes_[static_cast<unsigned char>(c)]];
      found |= ends_[at >> shift_];
    }
    return found;
  }

 private:
  std::array<std::uint8_t, 256> classes_{};  // bytes that no text holds are one class
  unsigned shift_ = 0;                       // a row of the table has 2^shift_ classes
  std::vector<std::uint32_t> next_;          // [state << shift_ + class], again a row
  std::vector<Found> ends_;                  // [state]: texts that end there
};

}  // namespace stepcast::detail
