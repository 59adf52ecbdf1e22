// Finds rank numbers in file names, and reads and writes lists of ranks.
#include "stepcast/trace/file_ranks.h"

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "stepcast/base/scan.h"
#include "stepcast/base/text.h"

namespace stepcast {
namespace {

constexpr std::int32_t kHighestRank = 1 << 20;
constexpr std::string_view kMark = "{}";

// A rank in the valid range; empty for other texts.
std::optional<std::int32_t> parse_rank(std::string_view digits) {
  const auto rank = scan<std::int32_t>(digits);
  return rank && *rank >= 0 && *rank <= kHighestRank ? rank : std::nullopt;
}

std::string_view leading_digits(std::string_view text) {
  std::size_t n = 0;
  while (n < text.size() && is_digit(text[n])) ++n;
  return text.substr(0, n);
}

}  // namespace

std::vector<std::string> words_of_name(std::string_view file_name) {
  std::vector<std::string> words;
  std::string word;
  for (const char c : lower(file_name))
    if (std::isalnum(static_cast<unsigned char>(c)) != 0)
      word += c;
    else if (!word.empty())
      words.push_back(std::exchange(word, {}));
  if (!word.empty()) words.push_back(std::move(word));
  return words;
}

// The number after "rank" or "worker" takes precedence over other numbers in the name.
std::optional<std::int32_t> rank_in_name(std::string_view file_name) {
  const std::string name = lower(file_name);
  for (const std::string_view word : {"rank", "worker"}) {
    for (std::size_t at = name.find(word); at != std::string::npos; at = name.find(word, at + 1)) {
      std::string_view rest = std::string_view{name}.substr(at + word.size());
      if (!rest.empty() && (rest.front() == '-' || rest.front() == '_' || rest.front() == '='))
        rest.remove_prefix(1);
      if (const auto rank = parse_rank(leading_digits(rest))) return rank;
    }
  }
  const std::vector<std::string> words = words_of_name(name);
  for (auto word = words.rbegin(); word != words.rend(); ++word) {
    const bool is_number = std::ranges::all_of(*word, is_digit);
    if (is_number && word->size() <= 5) return parse_rank(*word);
  }
  return std::nullopt;
}

// Tries each place where the text before {} occurs, until digits and the text after {} follow.
std::optional<std::int32_t> rank_by_pattern(std::string_view file_name, std::string_view pattern) {
  const std::size_t mark = pattern.find(kMark);
  if (mark == std::string_view::npos) return std::nullopt;
  const std::string_view before = pattern.substr(0, mark), behind = pattern.substr(mark + kMark.size());
  for (std::size_t at = file_name.find(before); at != std::string_view::npos;
       at = file_name.find(before, at + 1)) {
    const std::string_view digits = leading_digits(file_name.substr(at + before.size()));
    if (digits.empty()) continue;
    if (!file_name.substr(at + before.size() + digits.size()).starts_with(behind)) continue;
    if (const auto rank = parse_rank(digits)) return rank;
  }
  return std::nullopt;
}

Status check_rank_pattern(std::string_view pattern) {
  const std::size_t mark = pattern.find(kMark);
  if (mark != std::string_view::npos && pattern.find(kMark, mark + 1) == std::string_view::npos) return Ok{};
  return Error{
      fmt::format("{} in the pattern '{}'",
                  mark == std::string_view::npos ? "no place for the rank" : "two places for the rank",
                  pattern.substr(0, 80))}
      .expected("a part of the file names with {} in place of the rank, such as 'host{}_gpu'");
}

// A set removes duplicates and sorts. An empty list and a trailing comma are errors.
Result<std::vector<std::int32_t>> parse_ranks(std::string_view text) {
  const auto wrong = [&] {
    return Error{fmt::format("cannot read the ranks '{}'", text)}.expected("a list like 0,2-5");
  };
  std::set<std::int32_t> ranks;
  for (std::string_view rest = text; !rest.empty();) {
    const std::size_t comma = rest.find(',');
    const std::string_view item = rest.substr(0, comma);
    rest = comma == std::string_view::npos ? std::string_view{} : rest.substr(comma + 1);
    const std::size_t dash = item.find('-');
    const auto first = parse_rank(item.substr(0, dash));
    const auto last = dash == std::string_view::npos ? first : parse_rank(item.substr(dash + 1));
    if (!first || !last || *last < *first || (comma != std::string_view::npos && rest.empty()))
      return wrong();
    for (std::int32_t rank = *first; rank <= *last; ++rank) ranks.insert(rank);
  }
  if (ranks.empty()) return wrong();
  return std::vector<std::int32_t>{ranks.begin(), ranks.end()};
}

std::string list_ranks(std::span<const std::int32_t> ranks) {
  std::string text;
  for (std::size_t i = 0; i < ranks.size();) {
    std::size_t last = i;
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) ++last;
    if (!text.empty()) text += ',';
    text += last == i ? fmt::format("{}", ranks[i]) : fmt::format("{}-{}", ranks[i], ranks[last]);
    i = last + 1;
  }
  return text;
}

}  // namespace stepcast
