#include "stepcast/base/nearest_word.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace stepcast {
namespace {

// Levenshtein distance: the least number of insertions, deletions and replacements. O(|a| |b|) time, O(|b|) memory.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

}  // namespace

std::string spelling_core(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == ' ' || c == '-' || c == '_') continue;
    out += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return out;
}

std::optional<std::string> nearest_word(std::string_view word, const std::vector<std::string>& candidates,
                                        std::size_t most_edits) {
  // Longer words are not typing errors of a known word, and would be slow to compare.
  constexpr std::size_t kLongest = 64;
  if (word.empty() || word.size() > kLongest) return std::nullopt;
  const std::string wanted = spelling_core(word);
  std::size_t best = most_edits > 0 ? most_edits + 1 : wanted.size() / 3 + 2;
  std::optional<std::string> found;
  for (const std::string& candidate : candidates) {
    if (candidate.size() > kLongest) continue;
    const std::size_t distance = edit_distance(wanted, spelling_core(candidate));
    if (distance < best) {
      best = distance;
      found = candidate;
    }
  }
  return found;
}

}  // namespace stepcast
