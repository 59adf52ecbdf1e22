// Numbers, points in time and fixed texts in a line of a training log. Prefixes of launchers and terminals
// are removed by base/line_prefix.h.
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
  double half_digit = 0;  // rounding error: half a unit of the last printed digit
};

// The number at the start of `text` after blanks; empty if there is none.
[[nodiscard]] std::optional<LoggedNumber> number_at(std::string_view text);
// The number after the first `key`. Blanks, quotes, ':' and '=' may be between them.
[[nodiscard]] std::optional<LoggedNumber> number_behind(std::string_view line, std::string_view key);
// The same as a whole number >= 0.
[[nodiscard]] std::optional<std::uint64_t> count_behind(std::string_view line, std::string_view key);
// The text after the first `key`; empty if the key does not occur.
[[nodiscard]] std::optional<std::string_view> text_behind(std::string_view line, std::string_view key);
// Without blanks and line breaks at both ends.
[[nodiscard]] std::string_view trimmed(std::string_view text);

// Seconds since 1970 of the first date and time in the first 64 bytes of a line. Time zones are ignored.
// Forms: "2025-06-09 10:11:12,123", "2025-10-17T11:33:02", "2025/06/09 10:11:12", "06/09/2025 10:11:12",
// "06/09/25 10:11:12". Dates without a year count as 2000: "I0609 10:11:12.123456", "Jun 09 10:11:12", "06/09
// 10:11:12".
[[nodiscard]] std::optional<double> time_of_line(std::string_view line);

// Finds which of up to kMost fixed texts occur in a line, in one pass over the line (Aho and Corasick 1975).
// ASCII letters of the line are compared in lower case.
class MultiPatternMatcher {
 public:
  static constexpr std::size_t kMost = 128;
  using Found = std::bitset<kMost>;  // bit i: text i

  // The texts must be non-empty and in lower case. Throws std::logic_error for more than kMost texts, which
  // is a programming error.
  explicit MultiPatternMatcher(std::span<const std::string_view> texts);

  // The texts that occur in `line`. O(length of the line).
  [[nodiscard]] Found found_in(std::string_view line) const {
    Found found;
    std::uint32_t at = 0;  // row of the current state in the table
    for (const char c : line) {
      at = next_[at + classes_[static_cast<unsigned char>(c)]];
      found |= ends_[at >> shift_];
    }
    return found;
  }

 private:
  std::array<std::uint8_t, 256> classes_{};  // [byte] class; bytes that occur in no text share class 0
  unsigned shift_ = 0;                       // a row of the table has 2^shift_ classes
  std::vector<std::uint32_t> next_;          // [state << shift_ + class] row of the next state
  std::vector<Found> ends_;                  // [state] texts that end in this state
};

}  // namespace stepcast::detail
