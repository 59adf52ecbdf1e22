#include "stepcast/describe/detail/shell/test.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <span>
#include <utility>

#include "stepcast/describe/detail/shell/arithmetic.h"

namespace stepcast::detail {
namespace {

Truth truth(bool value) { return value ? Truth::yes : Truth::no; }

bool is_known(std::string_view text) { return text.find_first_of("$`") == std::string_view::npos; }

std::optional<std::int64_t> number(std::string_view text) {
  std::int64_t value = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
  if (read.ec != std::errc{} || read.ptr != text.data() + text.size()) return std::nullopt;
  return value;
}

Truth compared(const std::string& left, const std::string& op, const std::string& right, bool patterns) {
  if (!is_known(left) || !is_known(right)) return Truth::unknown;
  if (op == "=" || op == "==") return patterns ? matches_pattern(left, right) : truth(left == right);
  if (op == "!=") return patterns ? negated(matches_pattern(left, right)) : truth(left != right);
  const std::optional<std::int64_t> a = number(left), b = number(right);
  if (!a || !b) return Truth::unknown;
  if (op == "-eq") return truth(*a == *b);
  if (op == "-ne") return truth(*a != *b);
  if (op == "-lt") return truth(*a < *b);
  if (op == "-le") return truth(*a <= *b);
  if (op == "-gt") return truth(*a > *b);
  if (op == "-ge") return truth(*a >= *b);
  return Truth::unknown;
}

Truth of_operands(std::span<const std::string> words, bool patterns) {
  if (!words.empty() && words.front() == "!") return negated(of_operands(words.subspan(1), patterns));
  if (words.size() == 3) return compared(words[0], words[1], words[2], patterns);
  // An unquoted variable that is empty leaves `-z` alone.
  const std::string operand = words.size() == 2 ? words[1] : std::string{};
  if (words.empty() || words.size() > 2 || !is_known(operand)) return Truth::unknown;
  if (words.front() == "-z") return truth(operand.empty());
  if (words.front() == "-n") return words.size() == 2 ? truth(!operand.empty()) : Truth::unknown;
  return words.size() == 1 && is_known(words.front()) ? truth(!words.front().empty()) : Truth::unknown;
}

// `A && B || C` inside of `[[`.
Truth of_alternatives(std::span<const std::string> words) {
  Truth any = Truth::no, all = Truth::yes;
  for (std::size_t from = 0; from <= words.size();) {
    std::size_t end = from;
    while (end < words.size() && words[end] != "&&" && words[end] != "||") ++end;
    all = both(all, of_operands(words.subspan(from, end - from), true));
    if (end == words.size() || words[end] == "||") any = either(any, std::exchange(all, Truth::yes));
    from = end + 1;
  }
  return any;
}

}  // namespace

Truth negated(Truth t) {
  if (t == Truth::unknown) return t;
  return t == Truth::yes ? Truth::no : Truth::yes;
}
Truth both(Truth a, Truth b) { return std::min(a, b); }
Truth either(Truth a, Truth b) { return std::max(a, b); }

Truth truth_of_command(const std::vector<std::string>& words) {
  std::span<const std::string> rest = words;
  bool negates = false;
  while (!rest.empty() && rest.front() == "!") {
    negates = !negates;
    rest = rest.subspan(1);
  }
  if (rest.empty()) return Truth::unknown;
  Truth result = Truth::unknown;
  const std::string& name = rest.front();
  if (rest.size() == 1 && (name == "true" || name == ":")) result = Truth::yes;
  if (name == "echo" || std::ranges::all_of(rest, is_assignment)) result = Truth::yes;
  if (rest.size() == 1 && name == "false") result = Truth::no;
  if (name == "test") result = of_operands(rest.subspan(1), false);
  if (rest.size() > 1 && name == "[" && rest.back() == "]")
    result = of_operands(rest.subspan(1, rest.size() - 2), false);
  if (rest.size() > 1 && name == "[[" && rest.back() == "]]")
    result = of_alternatives(rest.subspan(1, rest.size() - 2));
  return negates ? negated(result) : result;
}

Truth matches_pattern(std::string_view text, std::string_view pattern) {
  if (!is_known(text) || !is_known(pattern) || pattern.find('[') != std::string_view::npos)
    return Truth::unknown;
  std::size_t t = 0, p = 0, star = std::string_view::npos, resume = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = t;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++resume;
    } else {
      return Truth::no;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return truth(p == pattern.size());
}

}  // namespace stepcast::detail
