#include "stepcast/logs/detail/multi_pattern_matcher.h"

#include <deque>

#include "stepcast/base/text.h"

namespace stepcast::detail {

MultiPatternMatcher::MultiPatternMatcher(std::span<const std::string_view> texts) {
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
  ends_.assign(1, 0);
  for (std::size_t i = 0; i < texts.size() && i < kMost; ++i) {
    std::uint32_t state = 0;
    for (const char c : texts[i]) {
      std::uint32_t edge = next_[(state << shift_) + classes_[static_cast<unsigned char>(c)]];
      if (edge == kNone) {
        edge = static_cast<std::uint32_t>(ends_.size());
        next_[(state << shift_) + classes_[static_cast<unsigned char>(c)]] = edge;
        ends_.push_back(0);
        next_.resize(next_.size() + width, kNone);
      }
      state = edge;
    }
    ends_[state] |= std::uint64_t{1} << i;
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
