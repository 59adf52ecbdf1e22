// The main loop of the reader, commands, functions and loops. expansion.cpp has the expansions, flow.cpp the
// control flow.
#include "stepcast/formats/detail/shell/reader.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

namespace stepcast::detail {
namespace {}  // namespace

bool is_python_script(const std::string& word) { return word.ends_with(".py"); }

// Reads the whole script. The result is the list of commands with their words.
Result<std::vector<ShellWords>> ShellReader::commands() {
  while (at_ < text_.size()) STEPCAST_TRY(step());
  STEPCAST_TRY(end_command_here());
  return std::move(commands_);
}

// Handles the character at the current position.
Status ShellReader::step() {
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
    case '(': return peek(1) == '(' && !in_word_ && array_.empty() ? arithmetic_command() : opened();
    case ')': return closed();
    case '|':
      // `Et*7|t*8` is a pipeline layout that the author did not quote, not a pipe.
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
  // `function NAME {`, the form without brackets.
  if (c == '{' && !in_word_ && command_.size() == 2 && command_.front() == "function" &&
      keep_body(std::string{command_.back()}, at_)) {
    return Ok{};
  }
  add(c);
  ++at_;
  return Ok{};
}

// A backslash: takes the next character literally, or continues the line.
Status ShellReader::escaped() {
  ++at_;
  if (peek() == '\r' && peek(1) == '\n') ++at_;
  if (at_ >= text_.size()) return Ok{};
  if (peek() != '\n') add(peek());
  ++at_;
  return Ok{};
}

// '...': everything is literal.
Status ShellReader::single_quoted() {
  const std::size_t end = text_.find('\'', at_ + 1);
  if (end == std::string_view::npos) return Error{"a quote ' is not closed"};
  word_ += text_.substr(at_ + 1, end - at_ - 1);
  in_word_ = true;
  at_ = end + 1;
  return Ok{};
}

// "...": expansions and some escapes are active.
Status ShellReader::double_quoted() {
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
        // Inside double quotes a backslash before any other character is literal.
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

// An opening bracket: an array, a pattern of `case`, a function definition, or a group of commands.
Status ShellReader::opened() {
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

// NAME (): the definition of a function.
bool ShellReader::define_function() {
  const bool has_word = command_.size() == 1 && command_.front() == "function";
  if (!in_word_ || (!command_.empty() && !has_word) || peek() != ')') return false;
  return keep_body(word_, at_ + 1);
}

// Stores the text between the braces as the body of a function and moves past it. False: there is no complete body.
bool ShellReader::keep_body(const std::string& name, std::size_t from) {
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

// Executes a function. Calls beyond the limits are ignored.
Status ShellReader::call(const std::string& body, const ShellWords& words, bool surely) {
  if (depth_ >= kDeepestScript || ++defined_.n_calls > kMostCalls) return Ok{};
  const ShellVariables before = variables_;
  // The arguments of the caller are restored after the call.
  set_arguments({words.begin() + 1, words.end()});
  ShellReader inner{body, defined_, depth_ + 1, surely ? Truth::yes : Truth::unknown};
  STEPCAST_ASSIGN(std::vector<ShellWords> commands, inner.commands());
  n_bytes_ += inner.n_bytes_;
  if (n_bytes_ > kMostScriptBytes) return Error{"a script that grows without limit"};
  for (ShellWords& command : commands) commands_.push_back(std::move(command));
  const auto outer = before.find(kFunctionArguments);
  set_arguments(outer == before.end() ? ShellWords{} : outer->second.value_or(ShellWords{}));
  return Ok{};
}

// Sets $1 to $9 and $@.
void ShellReader::set_arguments(ShellWords arguments) {
  constexpr std::size_t kMost = 9;
  for (std::size_t i = 0; i < kMost; ++i) {
    if (i < arguments.size()) {
      variables_[std::to_string(i + 1)] = ShellWords{arguments[i]};
    } else {
      variables_.erase(std::to_string(i + 1));
    }
  }
  variables_[kFunctionArguments] = std::move(arguments);
}

// Executes `shift`. If it may not run, or its argument is unknown, all arguments become unknown.
void ShellReader::shift(const ShellWords& words, bool surely) {
  const auto known = variables_.find(kFunctionArguments);
  if (known == variables_.end() || !known->second) return;
  ShellWords left = *known->second;
  const std::optional<std::int64_t> n =
      words.size() > 1 ? shell_arithmetic(words[1], variables_) : std::optional<std::int64_t>{1};
  if (!surely || !n || *n < 0) left.clear();
  left.erase(left.begin(), left.begin() + std::min<std::ptrdiff_t>(n.value_or(0), std::ssize(left)));
  set_arguments(std::move(left));
}

// A closing bracket: the end of a pattern, a group or an array.
Status ShellReader::closed() {
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
  ShellWords value = std::exchange(command_, {});
  if (const Truth truth = both(base_, flow_.runs()); truth != Truth::no)
    assign(variables_, left, std::move(value), true, truth == Truth::yes);
  return Ok{};
}

// Whether the current word is inside `[[ ... ]]`, which is one command even with && and ||.
bool ShellReader::in_double_brackets() const {
  const auto begins = std::ranges::find(command_, "[[");
  return begins != command_.end() && std::find(begins, command_.end(), "]]") == command_.end() &&
         word_ != "]]";
}

// `(( N > 1 ))` becomes the command `true` or `false`, if it can be evaluated. Other arithmetic commands have
// an unknown result.
Status ShellReader::arithmetic_command() {
  const std::size_t end = closing(text_.substr(at_), '(', ')');
  if (end == std::string_view::npos) return Error{"`((` is not closed"};
  const std::string_view inside = text_.substr(at_ + 2, end - 3);
  at_ += end + 1;
  std::string word = "((";
  constexpr std::string_view kComparisons[] = {">=", "<=", "==", "!=", ">", "<"};
  for (const std::string_view sign : kComparisons) {
    const std::size_t at = inside.find(sign);
    if (at == std::string_view::npos) continue;
    const auto left = shell_arithmetic(inside.substr(0, at), variables_),
               right = shell_arithmetic(inside.substr(at + sign.size()), variables_);
    if (!left || !right) break;
    const bool greater = *left > *right, equal = *left == *right;
    const bool holds = sign == ">="   ? greater || equal
                       : sign == "<=" ? !greater
                       : sign == "==" ? equal
                       : sign == "!=" ? !equal
                       : sign == ">"  ? greater
                                      : !greater && !equal;
    word = holds ? "true" : "false";
    break;
  }
  command_.push_back(word);
  return Ok{};
}

// A separator of commands: ; & | or a line break, single or doubled.
Status ShellReader::separated(char c) {
  ++at_;
  if (!array_.empty()) return end_word();  // line breaks inside an array
  if (c != '\n' && c == peek() && in_double_brackets()) {
    ++at_;
    STEPCAST_TRY(end_word());
    command_.push_back(std::string(2, c));
    return Ok{};
  }
  if (c == '&' && (peek() == '>' || peek(1) == '>')) return end_word();  // `&>` redirects to a file
  STEPCAST_TRY(end_command_here());
  // Doubled: && and || join commands, ;; ends an arm of `case`.
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

// Skips the here-documents that begin on this line. `read` stores one in a variable.
void ShellReader::skip_documents() {
  for (const std::string& last : std::exchange(documents_, {})) {
    if (const std::string name = std::exchange(reads_, {}); !name.empty()) {
      const std::optional<std::string> text = document_text(last + "\n" + std::string{text_.substr(at_)});
      if (text) assign(variables_, name + "=", {*text}, false);
    }
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

// Handles a redirection. Its target is dropped, except for here-documents.
Status ShellReader::redirected() {
  // A number before the sign is a file descriptor, not a word.
  if (in_word_ && word_.find_first_not_of("0123456789") == std::string::npos) {
    word_.clear();
    in_word_ = false;
  }
  STEPCAST_TRY(end_word());
  // `<<` or `<<-`: the next word is the end marker. `<<<` is a redirection of one word.
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

// Ends the current word and adds it to the command, unless it belongs to a redirection.
Status ShellReader::end_word() {
  if (!in_word_) return Ok{};
  n_bytes_ += word_.size() + 1;
  if (n_bytes_ > kMostScriptBytes) return Error{"a script that grows without limit"};
  if (std::exchange(takes_document_, false)) {
    documents_.push_back(word_);
  } else if (!std::exchange(skips_word_, false)) {
    command_.push_back(word_);
  }
  word_.clear();
  in_word_ = false;
  return Ok{};
}

Status ShellReader::end_command_here() {
  STEPCAST_TRY(end_word());
  return end_command();
}

// Ends the current command and executes it if it runs. Commands after a pipe are dropped.
Status ShellReader::end_command() {
  STEPCAST_TRY(flow_.check_depth());
  if (expects_pattern() && (command_.empty() || command_.front() != "esac")) return Ok{};
  if (flow_.open_case(command_)) return Ok{};
  ShellWords words = std::exchange(command_, {});
  skips_word_ = false;
  const bool piped = std::exchange(is_piped_, false);
  if (piped) return Ok{};
  STEPCAST_ASSIGN(const bool repeated, repeat(words));
  if (repeated || !flow_.steer(words)) return Ok{};
  // The result of the command is recorded even if it does not run, because && and || depend on it.
  const Truth runs_now = both(base_, flow_.runs());
  flow_.ended_with(truth_of_command(without_unset(words)));
  if (runs_now == Truth::no) return Ok{};
  return run(std::move(words), runs_now == Truth::yes);
}

// See the header.
ShellWords ShellReader::without_unset(ShellWords words) const {
  for (std::size_t i = 0; i + 1 < words.size(); ++i) {
    if (words[i] != "-z" && words[i] != "-n") continue;
    std::string_view name = words[i + 1];
    if (!name.starts_with('$')) continue;
    name.remove_prefix(name.starts_with("${") && name.ends_with('}') ? 2 : 1);
    if (name.ends_with('}')) name.remove_suffix(1);
    const bool is_name = !name.empty() && begins_name(name.front()) && std::ranges::all_of(name, in_name);
    if (is_name && !variables_.contains(name)) words[i + 1].clear();
  }
  return words;
}

// Scans ahead without executing. Loops that `break`, `continue` or `exit` are rejected, because the number of
// rounds is unknown.
std::optional<std::string_view> ShellReader::loop_body(std::size_t& behind) const {
  std::optional<std::size_t> begin;
  int depth = 0;
  bool begins_command = true;  // `do` and `done` are keywords only at the start of a command
  for (std::size_t i = at_; i < text_.size();) {
    const char c = text_[i];
    if (c == '\'' || c == '"') {
      const std::size_t end = text_.find(c, i + 1);
      if (end == std::string_view::npos) return std::nullopt;
      i = end + 1;
      begins_command = false;
    } else if (c == '#' && i > 0 && is_space(text_[i - 1])) {
      i = std::min(text_.find('\n', i), text_.size());
    } else if (begins_name(c)) {
      std::size_t end = i;
      while (end < text_.size() && !is_space(text_[end]) && text_[end] != ';' && text_[end] != '"') ++end;
      const std::string_view word = text_.substr(i, end - i);
      const bool is_first = std::exchange(begins_command, word == "do" || word == "then" || word == "else");
      if (word == "break" || word == "continue" || word == "exit") return std::nullopt;
      if (is_first && word == "do" && ++depth == 1) begin = end;
      if (is_first && word == "done" && begin && --depth == 0) {
        behind = end;
        return text_.substr(*begin, i - *begin);
      }
      i = end;
    } else {
      begins_command = c == '\n' || c == ';' || c == '&' || c == '|' || (begins_command && is_blank(c));
      ++i;
    }
  }
  return std::nullopt;
}

// Executes a `for` loop over known words by reading its body once per word.
Result<bool> ShellReader::repeat(const ShellWords& words) {
  constexpr std::size_t kMostRounds = 256;
  if (words.size() < 4 || words.size() > 3 + kMostRounds || words[0] != "for" || words[2] != "in" ||
      depth_ >= kDeepestScript || both(base_, flow_.runs()) != Truth::yes)
    return false;
  // Words that the shell would expand to an unknown list.
  const auto is_pattern = [](const std::string& word) {
    return word.find_first_of("$*?[{`") != std::string::npos;
  };
  std::size_t behind = 0;
  const std::optional<std::string_view> body = loop_body(behind);
  if (!body || std::any_of(words.begin() + 3, words.end(), is_pattern)) return false;
  for (auto value = words.begin() + 3; value != words.end(); ++value) {
    if (++defined_.n_calls > kMostCalls) break;
    assign(variables_, words[1] + "=", {*value}, false);
    ShellReader inner{*body, defined_, depth_ + 1};
    STEPCAST_ASSIGN(std::vector<ShellWords> commands, inner.commands());
    n_bytes_ += inner.n_bytes_;
    if (n_bytes_ > kMostScriptBytes) return Error{"a script that grows without limit"};
    std::ranges::move(commands, std::back_inserter(commands_));
  }
  at_ = behind;
  return true;
}

// Executes a command that runs (`surely`) or may run: assignments, functions and builtins. Other commands are
// added to the result.
Status ShellReader::run(ShellWords words, bool surely) {
  // `export A=1`, `declare -x A=1`: options of the builtin are dropped.
  const bool exports = declares(words.front());
  if (exports) words.erase(words.begin());
  while (exports && !words.empty() && words.front().starts_with('-')) words.erase(words.begin());
  while (!words.empty() && is_assignment(words.front())) {
    const std::size_t sign = words.front().find('=');
    // `A=1 command` sets A for that command only. No other command reads it, so it may stay set.
    assign(variables_, words.front().substr(0, sign + 1), {words.front().substr(sign + 1)}, false, surely);
    words.erase(words.begin());
  }
  if (words.empty() || exports) return Ok{};
  if (const auto function = defined_.functions.find(words.front()); function != defined_.functions.end()) {
    const std::string body = function->second;
    return call(body, words, surely);
  }
  // `read -d '' NAME << END` stores the document, which is read after this line, in its last word.
  if (words.front() == "read" && !documents_.empty() && surely) reads_ = words.back();
  if (words.front() == "read" || words.front() == "((") return Ok{};
  if (const std::size_t bracket = words.front().find('['), close = words.front().find("]=");
      bracket > 0 && close != std::string::npos && bracket < close &&
      is_assignment(words.front().substr(0, bracket) + "=")) {
    // An element of an associative array: `SIZE[key]=value`.
    const std::string name = words.front().substr(0, bracket);
    assign(variables_, name + "+=", {words.front().substr(bracket)}, true, surely);
    return Ok{};
  }
  if (words.front() == "shift") {
    shift(words, surely);
    return Ok{};
  }
  if (words.front() == "let") {
    for (auto word = words.begin() + 1; word != words.end(); ++word) let(variables_, *word, surely);
    return Ok{};
  }
  if (words.front() == "echo" || words.front() == "printf" || words.front() == "cat") {
    // Output only matters inside $(...).
    if (!defined_.captures || !defined_.echoed) return Ok{};
    if (!surely || words.front() != "echo" || defined_.echoed->size() > kMostScriptBytes) {
      defined_.echoed.reset();
      return Ok{};
    }
    words.erase(words.begin(), words.begin() + (words.size() > 1 && words[1] == "-n" ? 2 : 1));
    *defined_.echoed += joined_words(words) + " ";
    return Ok{};
  }
  if (words.front() == "eval") words.erase(words.begin());
  // Flags and `path.to.key=value` on a separate line belong to the command above. This happens after a
  // missing continuation or a comment between lines.
  const auto is_override = [](const std::string& word) {
    const std::string_view key = std::string_view{word}.substr(0, std::min(word.find('='), word.size()));
    return key.size() < word.size() && key.find('.') != std::string_view::npos &&
           key.find_first_of("/ $") == std::string_view::npos;
  };
  if (!words.empty() && (words.front().starts_with("-") || is_override(words.front())) &&
      !commands_.empty()) {
    commands_.back().insert(commands_.back().end(), words.begin(), words.end());
    return Ok{};
  }
  // `python -m megatron.training.pretrain_gpt` runs the script pretrain_gpt.py.
  for (std::size_t i = 0; i + 1 < words.size(); ++i) {
    const std::string module = words[i + 1].substr(words[i + 1].rfind('.') + 1);
    const bool is_of_ours = module.starts_with("pretrain") || module.starts_with("main") ||
                            module.starts_with("train_ppo") || module.ends_with("_main") ||
                            module.ends_with("sft_trainer");
    if ((words[i] != "-m" && words[i] != "--module") || !is_of_ours) continue;
    words[i + 1] = module + ".py";
    words.erase(words.begin() + static_cast<std::ptrdiff_t>(i));
  }
  STEPCAST_TRY(open_up(words));
  commands_.push_back(std::move(words));
  return Ok{};
}

// Replaces a word that contains a whole command by the words of that command.
Status ShellReader::open_up(ShellWords& words) {
  for (std::size_t i = 0; i < words.size() && depth_ < kDeepestScript; ++i) {
    const std::size_t at = words[i].find(".py");
    // A word with blanks that runs a script or module, such as the argument of `bash -c`.
    const bool runs_script =
        at != std::string::npos && at + 3 < words[i].size() && is_space(words[i][at + 3]);
    const bool runs_module =
        words[i].find("python") != std::string::npos && words[i].find(" -m ") != std::string::npos;
    if (!runs_script && !runs_module) continue;
    ShellReader inner{words[i], defined_, depth_ + 1};
    auto read = inner.commands();
    if (!read && !runs_script) continue;  // an ordinary sentence
    STEPCAST_ASSIGN(std::vector<ShellWords> commands, std::move(read));
    n_bytes_ += inner.n_bytes_;
    if (runs_script) words.resize(i);
    for (ShellWords& command : commands) {
      if (std::none_of(command.begin(), command.end(), is_python_script)) continue;
      words.resize(i);
      words.insert(words.end(), command.begin(), command.end());
      return Ok{};
    }
  }
  return Ok{};
}

}  // namespace stepcast::detail
