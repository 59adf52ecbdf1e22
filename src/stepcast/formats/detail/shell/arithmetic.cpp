// Arithmetic and conditions of the shell. Arithmetic is a recursive-descent parser (sum, term, atom).
// Conditions use three-valued logic, because many values are unknown before the script runs.
#include "stepcast/formats/detail/shell/arithmetic.h"

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include "stepcast/base/scan.h"

namespace stepcast::detail {

namespace {

constexpr int kDeepestBrackets = 32;  // deepest nesting of brackets

// Evaluates one expression. Each function returns nothing if it cannot evaluate the text at the current position.
class Arithmetic {
 public:
  Arithmetic(std::string_view text, const ShellVariables& variables) : text_(text), variables_(variables) {}
  std::optional<std::int64_t> value() {
    std::optional<std::int64_t> result = sum(0);
    skip();
    constexpr std::int64_t kMostBits = 49;  // 2^49 is still below the limit of checked()
    while (result && text_.substr(at_).starts_with("<<")) {
      at_ += 2;
      const std::optional<std::int64_t> bits = sum(0);
      if (!bits || *bits < 0 || *bits > kMostBits) return std::nullopt;
      result = checked(static_cast<double>(*result) * static_cast<double>(std::int64_t{1} << *bits));
      skip();
    }
    return at_ == text_.size() ? result : std::nullopt;
  }

 private:
  void skip() {
    while (at_ < text_.size() && is_space(text_[at_])) ++at_;
  }
  bool take(char c) {
    skip();
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  // Operands joined by + and -.
  std::optional<std::int64_t> sum(int depth) {
    std::optional<std::int64_t> left = product(depth);
    while (left) {
      const bool plus = take('+');
      if (!plus && !take('-')) return left;
      const std::optional<std::int64_t> right = product(depth);
      if (!right) return right;
      left = checked(static_cast<double>(*left) + (plus ? 1.0 : -1.0) * static_cast<double>(*right));
    }
    return left;
  }
  // Operands joined by *, /, % and **.
  std::optional<std::int64_t> product(int depth) {
    std::optional<std::int64_t> left = atom(depth);
    while (left) {
      skip();
      if (text_.substr(at_).starts_with("**")) {
        at_ += 2;
        const std::optional<std::int64_t> power = atom(depth);
        if (!power || *power < 0 || *power > 64) return std::nullopt;
        std::optional<std::int64_t> all = 1;
        for (std::int64_t i = 0; i < *power && all; ++i)
          all = checked(static_cast<double>(*all) * static_cast<double>(*left));
        left = all;
        continue;
      }
      const char op = at_ < text_.size() ? text_[at_] : '\0';
      if (op != '*' && op != '/' && op != '%') return left;
      ++at_;
      const std::optional<std::int64_t> right = atom(depth);
      if (!right || (op != '*' && *right == 0)) return std::nullopt;
      if (op == '*') {
        left = checked(static_cast<double>(*left) * static_cast<double>(*right));
      } else {
        left = op == '/' ? *left / *right : *left % *right;
      }
    }
    return left;
  }
  // A number, a variable (NAME, $NAME or ${NAME}), or an expression in brackets.
  std::optional<std::int64_t> atom(int depth) {
    skip();
    if (depth > kDeepestBrackets) return std::nullopt;
    if (take('(')) {
      const std::optional<std::int64_t> inner = sum(depth + 1);
      return take(')') ? inner : std::nullopt;
    }
    std::string_view name = text_.substr(at_);
    if (name.starts_with("${")) {
      name = name.substr(2, name.find('}') == std::string_view::npos ? 0 : name.find('}') - 2);
      at_ += name.size() + 3;
    } else {
      if (name.starts_with('$')) {
        name.remove_prefix(1);
        ++at_;
      }
      std::size_t length = 0;
      while (length < name.size() && in_name(name[length])) ++length;
      name = name.substr(0, length);
      at_ += length;
    }
    if (at_ > text_.size() || name.empty()) return std::nullopt;
    if (begins_name(name.front())) {
      const auto found = variables_.find(name);
      if (found == variables_.end() || !found->second || found->second->size() != 1) return std::nullopt;
      return number(found->second->front());
    }
    return number(name);
  }
  // A number of the text; nothing if it is not an integer within the limits.
  static std::optional<std::int64_t> number(std::string_view text) {
    const auto value = scan<std::int64_t>(text);
    return value ? checked(static_cast<double>(*value)) : std::nullopt;
  }
  // The result as an integer; nothing beyond 1e15, where doubles are no longer exact enough.
  static std::optional<std::int64_t> checked(double value) {
    constexpr double kMost = 1e15;  // exactly representable
    if (value > kMost || value < -kMost) return std::nullopt;
    return static_cast<std::int64_t>(value);
  }

  std::string_view text_;
  const ShellVariables& variables_;
  std::size_t at_ = 0;
};

// Whether an uncertain assignment only appends flags to the known value: `ARGS+=(...)`, `ARGS="$ARGS
// --flag"`. Then the known part can be kept.
bool may_grow(const ShellWords& known, const ShellWords& value, bool adds, bool is_array) {
  if (is_array) return adds;
  if (known.size() != 1 || value.size() != 1) return false;
  std::string_view more = value.front();
  if (!adds) {
    if (!more.starts_with(known.front())) return false;
    more.remove_prefix(known.front().size());
  }
  return !more.empty() && (is_space(more.front()) || (known.front().empty() && more.front() == '-'));
}

// Two of the three values from a bool.
Truth truth(bool value) { return value ? Truth::yes : Truth::no; }

// Whether a text is completely known: it contains no unexpanded `$` or backquote.
bool is_known(std::string_view text) { return text.find_first_of("$`") == std::string_view::npos; }

std::optional<std::int64_t> number(std::string_view text) { return scan<std::int64_t>(text); }

// The comparison `left op right`. `patterns`: the right side of = and != is a pattern, as inside `[[`.
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

// A condition without && and ||: a comparison, a unary test, or a single word.
Truth of_operands(std::span<const std::string> words, bool patterns) {
  if (!words.empty() && words.front() == "!") return negated(of_operands(words.subspan(1), patterns));
  if (words.size() == 3) return compared(words[0], words[1], words[2], patterns);
  // An unquoted empty variable disappears, which leaves `-z` without operand.
  const std::string operand = words.size() == 2 ? words[1] : std::string{};
  if (words.empty() || words.size() > 2 || !is_known(operand)) return Truth::unknown;
  if (words.front() == "-z") return truth(operand.empty());
  if (words.front() == "-n") return words.size() == 2 ? truth(!operand.empty()) : Truth::unknown;
  return words.size() == 1 && is_known(words.front()) ? truth(!words.front().empty()) : Truth::unknown;
}

// `A && B || C` inside `[[`. && has precedence over ||, as inside `[[` of Bash.
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

std::optional<std::int64_t> shell_arithmetic(std::string_view text, const ShellVariables& variables) {
  return Arithmetic{text, variables}.value();
}

bool is_assignment(const std::string& word) {
  std::size_t i = 0;
  while (i < word.size() && in_name(word[i])) ++i;
  return i > 0 && begins_name(word.front()) &&
         (word.compare(i, 1, "=") == 0 || word.compare(i, 2, "+=") == 0);
}

// An uncertain assignment makes the variable unknown. If it can only append flags, the known flags stay and
// `${NAME}` marks the unknown rest.
void assign(ShellVariables& variables, const std::string& left, ShellWords value, bool is_array,
            bool surely) {
  const bool adds = left.ends_with("+=");
  const std::string name = left.substr(0, left.size() - (adds ? 2 : 1));
  std::optional<ShellWords>& variable = variables[name];
  if (!surely) {
    if (!adds && variable == value) return;
    if (!variable || !may_grow(*variable, value, adds, is_array)) return variable.reset();
    const std::string rest = "${" + name + (is_array ? "[@]}" : "}");
    if (is_array) {
      variable->push_back(rest);
    } else {
      variable->front() += " " + rest;
    }
  } else if (adds && variable && value.size() == 1 && variable->size() == 1 && !is_array) {
    variable->front() += value.front();
  } else if (adds && variable) {
    variable->insert(variable->end(), value.begin(), value.end());
  } else {
    variable = std::move(value);
  }
}

void let(ShellVariables& variables, const std::string& word, bool surely) {
  if (!is_assignment(word)) return;
  const std::size_t sign = word.find('=');
  const std::optional<std::int64_t> value = shell_arithmetic(word.substr(sign + 1), variables);
  const std::string name = word.substr(0, std::min(word.find('+'), sign));
  assign(variables, name + "=", {value ? std::to_string(*value) : word}, false,
         surely && value && word[sign - 1] != '+');
}

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

// Matches with backtracking to the last `*`.
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
