#include "stepcast/describe/detail/shell/arithmetic.h"

#include <algorithm>
#include <charconv>
#include <system_error>
#include <utility>

#include "stepcast/describe/detail/shell/characters.h"

namespace stepcast::detail {
namespace {

constexpr int kDeepestBrackets = 32;  // brackets

class Arithmetic {
 public:
  Arithmetic(std::string_view text, const ShellVariables& variables) : text_(text), variables_(variables) {}
  std::optional<std::int64_t> value() {
    std::optional<std::int64_t> result = sum(0);
    skip();
    constexpr std::int64_t kMostBits = 49;  // as checked() has it
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
  static std::optional<std::int64_t> number(std::string_view text) {
    std::int64_t value = 0;
    const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
    if (read.ec != std::errc{} || read.ptr != text.data() + text.size()) return std::nullopt;
    return checked(static_cast<double>(value));
  }
  static std::optional<std::int64_t> checked(double value) {
    constexpr double kMost = 1e15;  // exact in a double
    if (value > kMost || value < -kMost) return std::nullopt;
    return static_cast<std::int64_t>(value);
  }

  std::string_view text_;
  const ShellVariables& variables_;
  std::size_t at_ = 0;
};

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

namespace {

// What is known stays, and flags may stand behind it: `ARGS+=(...)`, `ARGS="$ARGS --flag"`.
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

}  // namespace

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

}  // namespace stepcast::detail
