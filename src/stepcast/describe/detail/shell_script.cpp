#include "stepcast/describe/detail/shell_script.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include <fmt/format.h>

namespace stepcast::detail {
namespace {

constexpr std::size_t kMostBytes = std::size_t{1} << 20;  // of all words of a script together
constexpr int kDeepest = 32;                              // brackets in arithmetic

bool begins_name(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool in_name(char c) { return begins_name(c) || (c >= '0' && c <= '9'); }
bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }
bool is_space(char c) { return is_blank(c) || c == '\n'; }

using Words = std::vector<std::string>;

// Variables are arrays; one that is no array has one element. nullopt: set, but nobody knows to what.
using Variables = std::map<std::string, std::optional<Words>, std::less<>>;

std::string joined(const Words& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

// Whole numbers with + - * / % and brackets; names stand for variables.
class Arithmetic {
 public:
  Arithmetic(std::string_view text, const Variables& variables) : text_(text), variables_(variables) {}
  std::optional<std::int64_t> value() {
    const std::optional<std::int64_t> result = sum(0);
    skip();
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
    if (depth > kDeepest) return std::nullopt;
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
  const Variables& variables_;
  std::size_t at_ = 0;
};

class Script {
 public:
  explicit Script(std::string_view text) : text_(text) {}

  Result<std::vector<Words>> commands() {
    while (at_ < text_.size()) STEPCAST_TRY(step());
    STEPCAST_TRY(end_word());
    end_command();
    return std::move(commands_);
  }

 private:
  [[nodiscard]] char peek(std::size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }

  Status step() {
    const char c = peek();
    if (c == '\0') return Error::at("", fmt::format("byte {}", at_)).found("a zero byte").expected("text");
    if (is_blank(c)) {
      ++at_;
      return end_word();
    }
    switch (c) {
      case '\\': return escaped();
      case '\'': return single_quoted();
      case '"': return double_quoted();
      case '$':
      case '`': return expansion(false);
      case '(': return opened();
      case ')': return closed();
      case '|':
        // `Et*7|t*8` is a layout of stages that somebody did not quote.
        if (in_word_ && !is_space(peek(1)) && peek(1) != '|' && peek(1) != '&') break;
        return separated(c);
      case '\n':
      case ';':
      case '&': return separated(c);
      case '<':
      case '>': return redirected();
      case '#':
        if (!in_word_) {
          at_ = std::min(text_.find('\n', at_), text_.size());
          return Ok{};
        }
        break;
      default: break;
    }
    add(c);
    ++at_;
    return Ok{};
  }

  void add(char c) {
    word_ += c;
    in_word_ = true;
  }

  Status escaped() {
    ++at_;
    if (peek() == '\r' && peek(1) == '\n') ++at_;
    if (at_ >= text_.size()) return Ok{};
    if (peek() != '\n') add(peek());
    ++at_;
    return Ok{};
  }

  Status single_quoted() {
    const std::size_t end = text_.find('\'', at_ + 1);
    if (end == std::string_view::npos) return Error{"a quote ' is not closed"};
    word_ += text_.substr(at_ + 1, end - at_ - 1);
    in_word_ = true;
    at_ = end + 1;
    return Ok{};
  }

  Status double_quoted() {
    in_word_ = true;
    for (++at_; at_ < text_.size();) {
      const char c = peek();
      if (c == '"') {
        ++at_;
        return Ok{};
      }
      if (c == '$' || c == '`') {
        STEPCAST_TRY(expansion(true));
        continue;
      }
      if (c == '\\') {
        ++at_;
        if (peek() == '\r' && peek(1) == '\n') ++at_;
        const char next = peek();
        if (next != '\n') {
          if (next != '"' && next != '\\' && next != '$' && next != '`') word_ += '\\';
          word_ += next;
        }
        ++at_;
        continue;
      }
      word_ += c;
      ++at_;
    }
    return Error{"a quote \" is not closed"};
  }

  // `NAME=(` begins an array; other brackets group commands.
  Status opened() {
    ++at_;
    if (in_word_ && word_.ends_with('=') && command_.empty()) {
      array_ = word_;
      word_.clear();
      in_word_ = false;
      return Ok{};
    }
    return end_command_here();
  }

  Status closed() {
    ++at_;
    if (array_.empty()) return end_command_here();
    STEPCAST_TRY(end_word());
    assign(std::exchange(array_, {}), std::exchange(command_, {}), true);
    return Ok{};
  }

  Status separated(char c) {
    ++at_;
    if (!array_.empty()) return end_word();                                // lines inside of an array
    if (c == '&' && (peek() == '>' || peek(1) == '>')) return end_word();  // `&>` a file
    STEPCAST_TRY(end_command_here());
    after_condition_ = false;
    if ((c == '&' || c == '|') && peek() == c) {
      ++at_;
      after_condition_ = true;
    }
    is_piped_ = c == '|' && !after_condition_;
    return Ok{};
  }

  // Leaves out `2>&1`, `> file`, `>> file`, `< file`.
  Status redirected() {
    if (in_word_ && word_.find_first_not_of("0123456789") == std::string::npos) {
      word_.clear();
      in_word_ = false;
    }
    STEPCAST_TRY(end_word());
    while (peek() == '>' || peek() == '<') ++at_;
    if (peek() == '&') {
      ++at_;
      while (in_name(peek()) || peek() == '-') ++at_;
      return Ok{};
    }
    skips_word_ = true;
    return Ok{};
  }

  // At `$` or a backquote.
  Status expansion(bool quoted) {
    const std::string_view rest = text_.substr(at_);
    if (rest.front() == '`') return unknown_until(rest.find('`', 1));
    if (rest.starts_with("$((")) {
      const std::size_t end = rest.find("))");
      if (end == std::string_view::npos) return Error{"`$((` is not closed"};
      const std::optional<std::int64_t> value = Arithmetic{rest.substr(3, end - 3), variables_}.value();
      if (!value) return unknown_until(end + 1);
      at_ += end + 2;
      word_ += std::to_string(*value);
      in_word_ = true;
      return Ok{};
    }
    if (rest.starts_with("$(")) return unknown_until(closing_bracket(rest));
    if (rest.starts_with("${")) {
      const std::size_t end = rest.find('}');
      if (end == std::string_view::npos) return Error{"`${` is not closed"};
      return variable(rest.substr(2, end - 2), rest.substr(0, end + 1), quoted);
    }
    std::size_t end = 1;
    if (rest.size() > 1 && begins_name(rest[1])) {
      while (end < rest.size() && in_name(rest[end])) ++end;
    } else if (rest.size() > 1 && (in_name(rest[1]) || rest[1] == '@' || rest[1] == '*')) {
      end = 2;
    }
    if (end == 1) {
      add('$');
      ++at_;
      return Ok{};
    }
    if (rest[1] == '@' || rest[1] == '*') {  // arguments of the script: there are none
      at_ += end;
      return Ok{};
    }
    return variable(rest.substr(1, end - 1), rest.substr(0, end), quoted);
  }

  static std::size_t closing_bracket(std::string_view text) {
    int depth = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
      if (text[i] == '(') ++depth;
      if (text[i] == ')' && --depth == 0) return i;
    }
    return std::string_view::npos;
  }

  // Keeps what is written up to `last`, for whoever needs its value.
  Status unknown_until(std::size_t last) {
    if (last == std::string_view::npos) return Error{"a command in place of a word is not closed"};
    word_ += text_.substr(at_, last + 1);
    in_word_ = true;
    at_ += last + 1;
    return Ok{};
  }

  // `inside` is NAME, NAME:-default, NAME[@], ...; `written` with its signs.
  Status variable(std::string_view inside, std::string_view written, bool quoted) {
    at_ += written.size();
    std::size_t length = 0;
    while (length < inside.size() && in_name(inside[length])) ++length;
    const std::string_view name = inside.substr(0, length);
    std::string_view how = inside.substr(length);
    const auto found = variables_.find(name);
    const bool is_known = found != variables_.end() && found->second.has_value();
    const bool all = how.starts_with("[@]") || how.starts_with("[*]");
    if (all) how.remove_prefix(3);
    Words value;
    if (is_known) value = *found->second;
    const bool has_default = how.starts_with(":-") || how.starts_with(":=") || how.starts_with('-');
    if (found == variables_.end() || (is_known && joined(value).empty())) {
      if (has_default) {
        how.remove_prefix(how.starts_with('-') ? 1 : 2);
        value = {std::string{how}};
        if (how.find('$') != std::string_view::npos) return keep(written);
        return insert(value, all, quoted);
      }
    }
    if (!is_known || (!how.empty() && !has_default)) return keep(written);
    return insert(value, all, quoted);
  }

  Status keep(std::string_view written) {
    word_ += written;
    in_word_ = true;
    return Ok{};
  }

  Status insert(const Words& value, bool all, bool quoted) {
    if (all && quoted) {  // each element a word
      for (std::size_t i = 0; i < value.size(); ++i) {
        word_ += value[i];
        in_word_ = true;
        if (i + 1 < value.size()) STEPCAST_TRY(end_word());
      }
      return Ok{};
    }
    for (const char c : joined(value)) {
      if (!quoted && is_space(c)) {
        STEPCAST_TRY(end_word());
      } else {
        add(c);
      }
    }
    return Ok{};
  }

  Status end_word() {
    if (!in_word_) return Ok{};
    n_bytes_ += word_.size() + 1;
    if (n_bytes_ > kMostBytes) return Error{"a script that grows without end"};
    if (!std::exchange(skips_word_, false)) command_.push_back(word_);
    word_.clear();
    in_word_ = false;
    return Ok{};
  }

  Status end_command_here() {
    STEPCAST_TRY(end_word());
    end_command();
    return Ok{};
  }

  // Assignments are done, words that steer are taken away, and what remains is a command.
  void end_command() {
    Words words = std::exchange(command_, {});
    skips_word_ = false;
    const bool piped = std::exchange(is_piped_, false);
    while (!words.empty() && steers(words.front())) words.erase(words.begin());
    if (words.empty() || piped) return;
    const bool exports = words.front() == "export" || words.front() == "local" ||
                         words.front() == "declare" || words.front() == "readonly";
    if (exports) words.erase(words.begin());
    while (!words.empty() && is_assignment(words.front())) {
      const std::size_t sign = words.front().find('=');
      // `A=1 command` sets A for the command alone; as nothing else reads it, it may stay.
      assign(words.front().substr(0, sign + 1), {words.front().substr(sign + 1)}, false);
      words.erase(words.begin());
    }
    if (words.empty() || exports) return;
    // Flags on a line of their own, without a sign of continuation: of the command above.
    if (words.front().starts_with("-") && !commands_.empty()) {
      commands_.back().insert(commands_.back().end(), words.begin(), words.end());
      return;
    }
    commands_.push_back(std::move(words));
  }

  bool steers(const std::string& word) {
    if (word == "if" || word == "for" || word == "while" || word == "until" || word == "case" ||
        word == "{") {
      ++depth_;
      return word == "{";
    }
    if (word == "fi" || word == "done" || word == "esac" || word == "}") {
      depth_ = std::max(0, depth_ - 1);
      return true;
    }
    return word == "then" || word == "else" || word == "do" || word == "!";
  }

  static bool is_assignment(const std::string& word) {
    std::size_t i = 0;
    while (i < word.size() && in_name(word[i])) ++i;
    return i > 0 && begins_name(word.front()) &&
           (word.compare(i, 1, "=") == 0 || word.compare(i, 2, "+=") == 0);
  }

  // `left` ends in = or +=.
  void assign(const std::string& left, Words value, bool is_array) {
    const bool adds = left.ends_with("+=");
    const std::string name = left.substr(0, left.size() - (adds ? 2 : 1));
    std::optional<Words>& variable = variables_[name];
    if (depth_ > 0 || after_condition_) {
      variable.reset();
    } else if (adds && variable && value.size() == 1 && variable->size() == 1 && !is_array) {
      variable->front() += value.front();
    } else if (adds && variable) {
      variable->insert(variable->end(), value.begin(), value.end());
    } else {
      variable = std::move(value);
    }
  }

  std::string_view text_;
  std::size_t at_ = 0, n_bytes_ = 0;
  std::string word_, array_;  // array_: "NAME=" while its elements are read
  bool in_word_ = false, skips_word_ = false, is_piped_ = false, after_condition_ = false;
  int depth_ = 0;  // of conditions, loops and functions
  Words command_;
  std::vector<Words> commands_;
  Variables variables_;
};

bool is_python(const std::string& word) { return word.ends_with(".py"); }

// `bash -c "python pretrain_gpt.py ..."`: the words of the word.
Words opened_up(const Words& words) {
  for (const std::string& word : words) {
    if (word.find(".py ") == std::string::npos) continue;
    Words inner;
    std::string part;
    for (const char c : word + " ") {
      if (!is_space(c)) {
        part += c;
      } else if (!part.empty()) {
        inner.push_back(std::exchange(part, {}));
      }
    }
    // What launched it says how many GPUs there are.
    Words all;
    for (const std::string& before : words) {
      if (&before == &word) break;
      all.push_back(before);
    }
    all.insert(all.end(), inner.begin(), inner.end());
    return all;
  }
  return words;
}

}  // namespace

Result<std::vector<std::string>> launch_words(std::string_view script) {
  STEPCAST_ASSIGN(std::vector<Words> commands, Script{script}.commands());
  Words all, launch;
  bool is_training = false;
  for (const Words& command : commands) {
    Words words = opened_up(command);
    all.insert(all.end(), words.begin(), words.end());
    const auto python = std::find_if(words.begin(), words.end(), is_python);
    if (python == words.end()) continue;
    const bool trains = python->find("pretrain") != std::string::npos;
    if (is_training && !trains) continue;
    is_training = trains;
    launch = std::move(words);
  }
  return launch.empty() ? std::move(all) : std::move(launch);
}

}  // namespace stepcast::detail
