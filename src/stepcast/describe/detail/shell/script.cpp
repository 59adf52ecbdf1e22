#include "stepcast/describe/detail/shell/script.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "stepcast/describe/detail/shell/arithmetic.h"
#include "stepcast/describe/detail/shell/characters.h"
#include "stepcast/describe/detail/shell/flow.h"
#include "stepcast/describe/detail/shell/test.h"

namespace stepcast::detail {
namespace {

constexpr std::size_t kMostBytes = std::size_t{1} << 20;  // of all words of a script together
constexpr int kDeepest = 8;                               // scripts in words, defaults in defaults

using Words = ShellWords;

std::string joined(const Words& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

// What a script defines for itself.
struct Definitions {
  ShellVariables variables;
  std::map<std::string, std::string, std::less<>> functions;  // the text between the braces
  int n_calls = 0;
};
constexpr int kMostCalls = 500;
constexpr char kArguments[] = "@";  // the variable that holds those of a function

bool is_python(const std::string& word) { return word.ends_with(".py"); }

class Script {
 public:
  // A script in a word or a function of another (`depth` above 0) shares what that one knows; `runs`: whether it does.
  Script(std::string_view text, Definitions& defined, int depth = 0, Truth runs = Truth::yes)
      : text_(text), depth_(depth), base_(runs), defined_(defined), variables_(defined.variables) {}

  Result<std::vector<Words>> commands() {
    while (at_ < text_.size()) STEPCAST_TRY(step());
    STEPCAST_TRY(end_command_here());
    return std::move(commands_);
  }

 private:
  [[nodiscard]] char peek(std::size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }

  Status step() {
    const char c = peek();
    if (c == '\0') return Error::at("", fmt::format("byte {}", at_)).found("a zero byte").expected("text");
    if (is_blank(c) || (c == '|' && expects_pattern())) {
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
    if (c == '{' && !in_word_ && command_.size() == 2 && command_.front() == "function" &&
        keep_body(std::string{command_.back()}, at_)) {
      return Ok{};
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
    if (in_word_ && word_.ends_with('=') && (command_.empty() || declares(command_.front()))) {
      array_ = std::exchange(word_, {});
      command_.clear();
      in_word_ = false;
      return Ok{};
    }
    if (expects_pattern()) return end_word();
    if (define_function()) return Ok{};
    return end_command_here();
  }

  // Behind `NAME (`: keeps the text of `{ ... }` for when it is called.
  bool define_function() {
    const bool has_word = command_.size() == 1 && command_.front() == "function";
    if (!in_word_ || (!command_.empty() && !has_word) || peek() != ')') return false;
    return keep_body(word_, at_ + 1);
  }

  bool keep_body(const std::string& name, std::size_t from) {
    while (from < text_.size() && is_space(text_[from])) ++from;
    if (from >= text_.size() || text_[from] != '{') return false;
    const std::size_t length = closing(text_.substr(from), '{', '}');
    if (length == std::string_view::npos) return false;
    defined_.functions.insert_or_assign(name, std::string{text_.substr(from + 1, length - 1)});
    at_ = from + length + 1;
    command_.clear();
    word_.clear();
    in_word_ = false;
    return true;
  }

  // Runs the text of a function with its arguments.
  Status call(const std::string& body, const Words& words, bool surely) {
    if (depth_ >= kDeepest || ++defined_.n_calls > kMostCalls) return Ok{};
    const ShellVariables before = variables_;
    set_arguments({words.begin() + 1, words.end()});
    Script inner{body, defined_, depth_ + 1, surely ? Truth::yes : Truth::unknown};
    STEPCAST_ASSIGN(std::vector<Words> commands, inner.commands());
    n_bytes_ += inner.n_bytes_;
    if (n_bytes_ > kMostBytes) return Error{"a script that grows without end"};
    for (Words& command : commands) commands_.push_back(std::move(command));
    const auto outer = before.find(kArguments);
    set_arguments(outer == before.end() ? Words{} : outer->second.value_or(Words{}));
    return Ok{};
  }

  // $@, $1, $2, ...
  void set_arguments(Words arguments) {
    constexpr std::size_t kMost = 9;
    for (std::size_t i = 0; i < kMost; ++i) {
      if (i < arguments.size()) {
        variables_[std::to_string(i + 1)] = Words{arguments[i]};
      } else {
        variables_.erase(std::to_string(i + 1));
      }
    }
    variables_[kArguments] = std::move(arguments);
  }

  // `shift 2`; unknown arguments where it may not run.
  void shift(const Words& words, bool surely) {
    const auto known = variables_.find(kArguments);
    if (known == variables_.end() || !known->second) return;
    Words left = *known->second;
    const std::optional<std::int64_t> n =
        words.size() > 1 ? shell_arithmetic(words[1], variables_) : std::optional<std::int64_t>{1};
    if (!surely || !n || *n < 0) left.clear();
    left.erase(left.begin(), left.begin() + std::min<std::ptrdiff_t>(n.value_or(0), std::ssize(left)));
    set_arguments(std::move(left));
  }

  Status closed() {
    ++at_;
    if (array_.empty()) {
      STEPCAST_TRY(end_word());
      flow_.open_case(command_);
      if (!expects_pattern()) return end_command_here();
      flow_.begin_arm(std::exchange(command_, {}));
      return Ok{};
    }
    STEPCAST_TRY(end_word());
    const std::string left = std::exchange(array_, {});
    Words value = std::exchange(command_, {});
    if (const Truth truth = both(base_, flow_.runs()); truth != Truth::no)
      assign(variables_, left, std::move(value), true, truth == Truth::yes);
    return Ok{};
  }

  Status separated(char c) {
    ++at_;
    if (!array_.empty()) return end_word();                                // lines inside of an array
    if (c == '&' && (peek() == '>' || peek(1) == '>')) return end_word();  // `&>` a file
    STEPCAST_TRY(end_command_here());
    const bool twice = c != '\n' && peek() == c;
    if (twice) ++at_;
    if (twice && c == ';' && flow_.in_cases()) {
      flow_.end_arm();
    }
    flow_.join(twice && c != ';' ? c : '\0');
    is_piped_ = c == '|' && !twice;
    if (c == '\n') skip_documents();
    return Ok{};
  }

  // Lines that feed a command (`<< END`), up to the line with their last word.
  void skip_documents() {
    for (const std::string& last : std::exchange(documents_, {})) {
      while (at_ < text_.size()) {
        const std::size_t end = std::min(text_.find('\n', at_), text_.size());
        std::string_view line = text_.substr(at_, end - at_);
        at_ = std::min(end + 1, text_.size());
        while (!line.empty() && is_blank(line.front())) line.remove_prefix(1);
        while (!line.empty() && is_blank(line.back())) line.remove_suffix(1);
        if (line == last) break;
      }
    }
  }

  // Leaves out `2>&1`, `> file`, `>> file`, `< file`.
  Status redirected() {
    if (in_word_ && word_.find_first_not_of("0123456789") == std::string::npos) {
      word_.clear();
      in_word_ = false;
    }
    STEPCAST_TRY(end_word());
    if (peek() == '<' && peek(1) == '<' && peek(2) != '<') {
      at_ += peek(2) == '-' ? 3U : 2U;
      takes_document_ = true;
      return Ok{};
    }
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
      const std::optional<std::int64_t> value = shell_arithmetic(rest.substr(3, end - 3), variables_);
      if (!value) return unknown_until(end + 1);
      at_ += end + 2;
      word_ += std::to_string(*value);
      in_word_ = true;
      return Ok{};
    }
    if (rest.starts_with("$(")) return unknown_until(closing(rest, '(', ')'));
    if (rest.starts_with("${")) {
      const std::size_t end = closing(rest, '{', '}');
      if (end == std::string_view::npos) return Error{"`${` is not closed"};
      return variable(rest.substr(2, end - 2), rest.substr(0, end + 1), quoted);
    }
    std::size_t end = 1;
    if (rest.size() > 1 && begins_name(rest[1])) {
      while (end < rest.size() && in_name(rest[end])) ++end;
    } else if (rest.size() > 1 && (in_name(rest[1]) || rest[1] == '@' || rest[1] == '*')) {
      end = 2;
    }
    if (end == 1 && rest.size() > 1 && rest[1] == '#') {
      at_ += 2;
      word_ += std::to_string(arguments().size());
      in_word_ = true;
      return Ok{};
    }
    if (end == 1) {
      add('$');
      ++at_;
      return Ok{};
    }
    if (rest[1] == '@' || rest[1] == '*') {
      at_ += end;
      return insert(arguments(), rest[1] == '@', quoted);
    }
    return variable(rest.substr(1, end - 1), rest.substr(0, end), quoted);
  }

  // Of the function that runs; the script itself has none.
  [[nodiscard]] Words arguments() const {
    const auto known = variables_.find(kArguments);
    return known == variables_.end() ? Words{} : known->second.value_or(Words{});
  }

  static std::size_t closing(std::string_view text, char open, char close) {
    int depth = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
      if (text[i] == open) ++depth;
      if (text[i] == close && --depth == 0) return i;
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
    Words value;
    if (is_known) value = *found->second;
    const bool all = how.starts_with("[@]"), in_one = how.starts_with("[*]");
    if (all || in_one) {
      how.remove_prefix(3);
    } else if (how.starts_with('[') && is_known) {  // one element; the first without an index
      const std::size_t end = std::min(how.find(']'), how.size() - 1);
      const std::optional<std::int64_t> index = shell_arithmetic(how.substr(1, end - 1), variables_);
      if (!index || *index < 0 || static_cast<std::size_t>(*index) >= value.size()) return keep(written);
      value = {value[static_cast<std::size_t>(*index)]};
      how.remove_prefix(end + 1);
    }
    if (!all && !in_one && is_known && value.size() > 1) {
      value.erase(value.begin() + 1, value.end());  // an array by its name is its first element
    }
    const bool has_default = how.starts_with(":-") || how.starts_with(":=") || how.starts_with('-');
    if (has_default && (found == variables_.end() || (is_known && joined(value).empty()))) {
      const bool assigns = how.starts_with(":=");
      const std::optional<std::string> text = expanded(how.substr(how.starts_with('-') ? 1 : 2));
      if (!text || text->find('$') != std::string::npos) return keep(written);
      if (assigns) assign(variables_, std::string{name} + "=", {*text}, false);
      return insert({*text}, false, quoted);
    }
    if (!is_known || (!how.empty() && !has_default)) return keep(written);
    return insert(value, all, quoted);
  }

  // A text with its variables; nothing if it is no text.
  [[nodiscard]] std::optional<std::string> expanded(std::string_view text) {
    if (depth_ >= kDeepest) return std::nullopt;
    Script inner{text, defined_, depth_ + 1};
    while (inner.at_ < text.size()) {
      const char c = inner.peek();
      Status status = Ok{};
      if (c == '"' || c == '\'' || c == '\\') {
        status = c == '"' ? inner.double_quoted() : c == '\'' ? inner.single_quoted() : inner.escaped();
      } else if (c == '$' || c == '`') {
        status = inner.expansion(true);
      } else {
        inner.add(c);
        ++inner.at_;
      }
      if (!status.ok() || inner.word_.size() > kMostBytes) return std::nullopt;
    }
    return std::move(inner.word_);
  }

  Status keep(std::string_view written) {
    word_ += written;
    in_word_ = true;
    return Ok{};
  }

  Status insert(const Words& value, bool all, bool quoted) {
    if (all && quoted) {  // each element a word
      if (value.empty() && word_.empty()) in_word_ = false;
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
    if (std::exchange(takes_document_, false)) {
      documents_.push_back(word_);
    } else if (!std::exchange(skips_word_, false)) {
      command_.push_back(word_);
    }
    word_.clear();
    in_word_ = false;
    return Ok{};
  }

  Status end_command_here() {
    STEPCAST_TRY(end_word());
    return end_command();
  }

  [[nodiscard]] bool expects_pattern() const { return array_.empty() && flow_.expects_pattern(); }

  static bool declares(const std::string& word) {
    return word == "export" || word == "local" || word == "declare" || word == "readonly" ||
           word == "typeset";
  }

  // Words that steer are taken away, assignments are done, and what remains is a command.
  Status end_command() {
    STEPCAST_TRY(flow_.check_depth());
    if (expects_pattern() && (command_.empty() || command_.front() != "esac")) return Ok{};
    if (flow_.open_case(command_)) return Ok{};
    Words words = std::exchange(command_, {});
    skips_word_ = false;
    const bool piped = std::exchange(is_piped_, false);
    if (piped || !flow_.steer(words)) return Ok{};
    const Truth runs_now = both(base_, flow_.runs());
    flow_.ended_with(truth_of_command(words));
    if (runs_now == Truth::no) return Ok{};
    return run(std::move(words), runs_now == Truth::yes);
  }

  Status run(Words words, bool surely) {
    const bool exports = declares(words.front());
    if (exports) words.erase(words.begin());
    while (exports && !words.empty() && words.front().starts_with('-')) words.erase(words.begin());
    while (!words.empty() && is_assignment(words.front())) {
      const std::size_t sign = words.front().find('=');
      // `A=1 command` sets A for the command alone; as nothing else reads it, it may stay.
      assign(variables_, words.front().substr(0, sign + 1), {words.front().substr(sign + 1)}, false, surely);
      words.erase(words.begin());
    }
    if (words.empty() || exports) return Ok{};
    if (const auto function = defined_.functions.find(words.front()); function != defined_.functions.end()) {
      const std::string body = function->second;
      return call(body, words, surely);
    }
    if (words.front() == "shift") {
      shift(words, surely);
      return Ok{};
    }
    if (words.front() == "let") {
      for (auto word = words.begin() + 1; word != words.end(); ++word) let(variables_, *word, surely);
      return Ok{};
    }
    if (words.front() == "echo" || words.front() == "printf" || words.front() == "cat") return Ok{};
    if (words.front() == "eval") words.erase(words.begin());
    // Flags on a line of their own, without a sign of continuation: of the command above.
    if (!words.empty() && words.front().starts_with("-") && !commands_.empty()) {
      commands_.back().insert(commands_.back().end(), words.begin(), words.end());
      return Ok{};
    }
    STEPCAST_TRY(open_up(words));
    commands_.push_back(std::move(words));
    return Ok{};
  }

  // `bash -c "python pretrain_gpt.py ..."`: the command in the word stands behind what launches it, which says how
  // many GPUs there are.
  Status open_up(Words& words) {
    for (std::size_t i = 0; i < words.size() && depth_ < kDeepest; ++i) {
      const std::size_t at = words[i].find(".py");
      if (at == std::string::npos || at + 3 == words[i].size() || !is_space(words[i][at + 3])) continue;
      Script inner{words[i], defined_, depth_ + 1};
      STEPCAST_ASSIGN(std::vector<Words> commands, inner.commands());
      n_bytes_ += inner.n_bytes_;
      words.resize(i);
      for (Words& command : commands) {
        if (std::none_of(command.begin(), command.end(), is_python)) continue;
        words.insert(words.end(), command.begin(), command.end());
        return Ok{};
      }
    }
    return Ok{};
  }

  std::string_view text_;
  std::size_t at_ = 0, n_bytes_ = 0;
  std::string word_, array_;  // array_: "NAME=" while its elements are read
  bool in_word_ = false, skips_word_ = false, takes_document_ = false, is_piped_ = false;
  int depth_ = 0;
  Truth base_;
  ShellFlow flow_;
  std::vector<std::string> documents_;  // last words of documents that begin on the next line
  Words command_;
  std::vector<Words> commands_;
  Definitions& defined_;
  ShellVariables& variables_;
};

// Of a script that hands its flags to another: those that its variables hold.
Words flags_in_variables(const ShellVariables& variables) {
  Words flags;
  for (const auto& [name, value] : variables) {
    const std::string text = value ? joined(*value) : std::string{};
    if (!std::string_view{text}
             .substr(std::min(text.find_first_not_of(" \t\n"), text.size()))
             .starts_with("--"))
      continue;
    std::string word;
    for (const char c : text + " ") {
      if (!is_space(c)) {
        word += c;
      } else if (!word.empty()) {
        flags.push_back(std::exchange(word, {}));
      }
    }
  }
  return flags;
}

}  // namespace

Result<std::vector<std::string>> launch_words(std::string_view script) {
  Definitions defined;
  STEPCAST_ASSIGN(std::vector<Words> commands, Script(script, defined).commands());
  const auto runs_python = [](const Words& words) {
    return std::any_of(words.begin(), words.end(), is_python);
  };
  if (std::none_of(commands.begin(), commands.end(), runs_python)) {
    // A function that something else calls.
    const auto functions = defined.functions;
    for (const auto& [name, body] : functions) {
      STEPCAST_ASSIGN(std::vector<Words> more, Script(body, defined, 1).commands());
      if (std::any_of(more.begin(), more.end(), runs_python)) commands = std::move(more);
    }
  }
  Words all, launch;
  bool is_training = false;
  for (Words& words : commands) {
    all.insert(all.end(), words.begin(), words.end());
    const auto python = std::find_if(words.begin(), words.end(), is_python);
    if (python == words.end()) continue;
    const bool trains = python->find("pretrain") != std::string::npos;
    if (is_training && !trains) continue;
    is_training = trains;
    launch = std::move(words);
  }
  if (!launch.empty()) return launch;
  if (all.empty() || !all.front().starts_with('-')) {
    if (Words flags = flags_in_variables(defined.variables); !flags.empty()) return flags;
  }
  return all;
}

}  // namespace stepcast::detail
