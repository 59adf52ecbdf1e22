// Which of a few fixed texts a line holds, in one pass over it whatever their number (Aho and Corasick 1975).
// ASCII letters count as lower case.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace stepcast::detail {

class MultiPatternMatcher {
 public:
  static constexpr std::size_t kMost = 64;

  // At most kMost texts, none of them empty, in lower case.
  explicit MultiPatternMatcher(std::span<const std::string_view> texts);

  // Bit i for text i.
  [[nodiscard]] std::uint64_t found_in(std::string_view line) const {
    std::uint64_t found = 0;
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
  std::vector<std::uint64_t> ends_;          // [state]: texts that end there
};

}  // namespace stepcast::detail
