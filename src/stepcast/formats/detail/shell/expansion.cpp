// Expansions of a ShellReader: variables with their operators, arithmetic, and the output of commands. An
// expansion that cannot be computed stays in the word as it is written.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "stepcast/base/text.h"
#include "stepcast/formats/detail/shell/reader.h"

namespace stepcast::detail {

std::string joined_words(const ShellWords& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

// Handles the expansion at the current position: `...`, $((...)), $(...), ${...}, $NAME, $1, $@, $*, $#.
Status ShellReader::expansion(bool quoted) {
  const std::string_view rest = text_.substr(at_);
  if (rest.front() == '`') return unknown_until(rest.find('`', 1));
  if (rest.starts_with("$((")) {
    const std::size_t end = closing(rest, '(', ')');
    if (end == std::string_view::npos) return Error{"`$((` is not closed"};
    const std::optional<std::int64_t> value = shell_arithmetic(rest.substr(3, end - 4), variables_);
    if (!value) return unknown_until(end);
    at_ += end + 1;
    word_ += std::to_string(*value);
    in_word_ = true;
    return Ok{};
  }
  if (rest.starts_with("$(")) return command_output(rest, quoted);
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

// Arguments of the current function; empty outside of functions.
ShellWords ShellReader::arguments() const {
  const auto known = variables_.find(kFunctionArguments);
  return known == variables_.end() ? ShellWords{} : known->second.value_or(ShellWords{});
}

// Position of the bracket that closes the first one; npos if it is not closed. Quotes are not considered.
std::size_t ShellReader::closing(std::string_view text, char open, char close) {
  int depth = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == open) ++depth;
    if (text[i] == close && --depth == 0) return i;
  }
  return std::string_view::npos;
}

// Handles $(...). The output is known for `cat <<`, `echo`, `expr`, and for functions and conditions that only echo.
Status ShellReader::command_output(std::string_view rest, bool quoted) {
  const std::size_t end = closing(rest, '(', ')');
  if (end == std::string_view::npos) return unknown_until(end);
  std::string_view inside = rest.substr(2, end - 2);
  while (!inside.empty() && is_space(inside.front())) inside.remove_prefix(1);
  std::optional<std::string> text;
  const std::size_t document = inside.find("<<");
  if (inside.starts_with("cat") && document != std::string_view::npos &&
      inside.find_first_not_of(' ', 3) == document) {
    text = document_text(inside.substr(document + 2));
  } else if (inside.starts_with("echo ") && inside.find_first_of("|<>;&") == std::string_view::npos) {
    text = expanded(inside.substr(inside.starts_with("echo -n ") ? 8 : 5));
    if (text && inside.find('"') == std::string_view::npos) std::ranges::replace_if(*text, is_space, ' ');
  }
  const std::string_view first = inside.substr(0, inside.find_first_of(" \t\n;"));
  if (first == "expr") {
    std::string sum{inside.substr(first.size())};
    std::erase(sum, '\\');
    if (const auto value = shell_arithmetic(sum, variables_)) text = std::to_string(*value);
  }
  if (!text && (first == "[" || first == "[[" || first == "if" || defined_.functions.contains(first)))
    text = echoed(inside);
  if (!text || text->find("$(") != std::string::npos) return unknown_until(end);
  at_ += end + 1;
  return insert({*text}, false, quoted);
}

// Runs the script with copies of the definitions and collects what it echoes. Commands other than echo and
// tests make the output unknown.
std::optional<std::string> ShellReader::echoed(std::string_view script) {
  constexpr std::string_view kQuiet[] = {"[", "[[", "test", "true", "false", ":", "return", "set"};
  if (depth_ >= kDeepestScript || ++defined_.n_calls > kMostCalls) return std::nullopt;
  ShellDefinitions defined = defined_;
  defined.captures = true;
  defined.echoed.emplace();
  ShellReader inner{script, defined, depth_ + 1};
  const Result<std::vector<ShellWords>> commands = inner.commands();
  defined_.n_calls = defined.n_calls;
  if (!commands || !defined.echoed) return std::nullopt;
  const bool is_quiet = std::ranges::all_of(*commands, [&](const ShellWords& words) {
    return !words.empty() && std::ranges::find(kQuiet, words.front()) != std::end(kQuiet);
  });
  if (!is_quiet) return std::nullopt;
  while (defined.echoed->ends_with(' ')) defined.echoed->pop_back();
  return std::move(defined.echoed);
}

// Applies ${NAME#begin}, ${NAME%end}, ${NAME//this/that}, ${NAME,,} and ${NAME^^}, if they contain no
// patterns. False: not one of these.
bool ShellReader::cut_out(std::string_view written, ShellWords& value) const {
  std::string plain{written};
  for (std::size_t at = plain.find("$'\\n'"); at != std::string::npos; at = plain.find("$'\\n'", at))
    plain.replace(at, 5, "\n");
  const std::string_view how = plain;
  if (how.empty() || value.size() != 1 || how.find_first_of("*?[$`\\") != std::string_view::npos)
    return false;
  std::string& text = value.front();
  const char first = how.front();
  const bool twice = how.size() > 1 && how[1] == first;
  const std::string_view rest = how.substr(twice ? 2 : 1);
  if (first == '#') {
    if (text.starts_with(rest)) text.erase(0, rest.size());
  } else if (first == '%') {
    if (text.ends_with(rest)) text.erase(text.size() - rest.size());
  } else if (first == ',' && twice) {
    text = lower(text);
  } else if (first == '^' && twice) {
    std::ranges::transform(text, text.begin(), [](char c) {
      return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
    });
  } else if (first == '/') {
    const std::size_t slash = rest.find('/');
    const std::string_view old = rest.substr(0, slash);
    const std::string_view now =
        slash == std::string_view::npos ? std::string_view{} : rest.substr(slash + 1);
    if (old.empty()) return false;
    for (std::size_t at = text.find(old); at != std::string::npos; at = text.find(old, at + now.size())) {
      text.replace(at, old.size(), now);
      if (!twice || text.size() > kMostScriptBytes) break;
    }
  } else {
    return false;
  }
  return true;
}

// The text of a here-document. `rest` begins after `<<`, optionally with `-`. Nothing if the end is missing.
// A quoted end marker disables expansion.
std::optional<std::string> ShellReader::document_text(std::string_view rest) {
  const std::size_t line = rest.find('\n');
  if (line == std::string_view::npos) return std::nullopt;
  std::string last;
  for (const char c : rest.substr(0, line))
    if (in_name(c)) last += c;
  const bool literal = rest.substr(0, line).find_first_of("'\"\\") != std::string_view::npos;
  const std::size_t end = rest.find("\n" + last, line);
  if (last.empty() || end == std::string_view::npos) return std::nullopt;
  const std::string_view text = end > line ? rest.substr(line + 1, end - line - 1) : std::string_view{};
  return literal ? std::optional{std::string{text}} : expanded(text);
}

// Copies the text up to `last` into the word unchanged.
Status ShellReader::unknown_until(std::size_t last) {
  if (last == std::string_view::npos) return Error{"a command substitution is not closed"};
  word_ += text_.substr(at_, last + 1);
  in_word_ = true;
  at_ += last + 1;
  return Ok{};
}

// Handles ${inside}: indices first, then defaults, alternatives and cut-outs.
Status ShellReader::variable(std::string_view inside, std::string_view written, bool quoted) {
  at_ += written.size();
  std::size_t length = 0;
  while (length < inside.size() && in_name(inside[length])) ++length;
  const std::string_view name = inside.substr(0, length);
  std::string_view how = inside.substr(length);
  const auto found = variables_.find(name);
  const bool is_known = found != variables_.end() && found->second.has_value();
  ShellWords value;
  if (is_known) value = *found->second;
  const bool all = how.starts_with("[@]"), in_one = how.starts_with("[*]");
  if (all || in_one) {
    how.remove_prefix(3);
  } else if (how.starts_with('[') && is_known) {  // one element; without an index the first
    const std::size_t end = std::min(how.find(']'), how.size() - 1);
    const std::optional<std::int64_t> index = shell_arithmetic(how.substr(1, end - 1), variables_);
    const std::string named = "[" + expanded(how.substr(1, end - 1)).value_or("") + "]=";
    const auto element =
        std::ranges::find_if(value, [&](const std::string& word) { return word.starts_with(named); });
    if (element != value.end()) {  // of `declare -A NAME=([key]=value)`
      value = {element->substr(named.size())};
    } else if (!index || *index < 0 || static_cast<std::size_t>(*index) >= value.size()) {
      return keep(written);
    } else {
      value = {value[static_cast<std::size_t>(*index)]};
    }
    how.remove_prefix(end + 1);
  }
  if (!all && !in_one && is_known && value.size() > 1) {
    value.erase(value.begin() + 1, value.end());  // the name of an array means its first element
  }
  const bool has_default = how.starts_with(":-") || how.starts_with(":=") || how.starts_with('-');
  if (has_default && (found == variables_.end() || (is_known && joined_words(value).empty()))) {
    const bool assigns = how.starts_with(":=");
    const std::optional<std::string> text = expanded(how.substr(how.starts_with('-') ? 1 : 2));
    // Unknown parts remain as written, such as `$HOME/models`. The output of a command may be anything, so
    // the whole expansion is kept.
    if (!text || text->find("$(") != std::string::npos || text->find('`') != std::string::npos)
      return keep(written);
    if (assigns) assign(variables_, std::string{name} + "=", {*text}, false);
    return insert({*text}, false, quoted);
  }
  if (how.starts_with(":+") || how.starts_with('+')) {  // ${NAME:+word}: the word if the variable is set
    if (found != variables_.end() && !is_known) return keep(written);
    if (!is_known || joined_words(value).empty()) return insert({}, true, true);
    how.remove_prefix(how.starts_with('+') ? 1 : 2);
    if (how == "\"${" + std::string{name} + "[@]}\"") return insert(value, true, true);
    const std::optional<std::string> text = expanded(how);
    return text ? insert({*text}, false, quoted) : keep(written);
  }
  if (is_known && !all && cut_out(how, value)) return insert(value, false, quoted);
  if (!is_known || (!how.empty() && !has_default)) return keep(written);
  return insert(value, all, quoted);
}

// Expands a text as if in double quotes. Nothing if it is malformed, too long or too deeply nested.
std::optional<std::string> ShellReader::expanded(std::string_view text) {
  if (depth_ >= kDeepestScript) return std::nullopt;
  ShellReader inner{text, defined_, depth_ + 1};
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
    if (!status.ok() || inner.word_.size() > kMostScriptBytes) return std::nullopt;
  }
  return std::move(inner.word_);
}

// Keeps an expansion as it is written.
Status ShellReader::keep(std::string_view written) {
  word_ += written;
  in_word_ = true;
  return Ok{};
}

// Adds the value of an expansion to the current word. `all` and `quoted`: each element becomes a word
// ("${A[@]}"). Otherwise unquoted text is split at blanks.
Status ShellReader::insert(const ShellWords& value, bool all, bool quoted) {
  if (all && quoted) {  // each element becomes a word
    if (value.empty() && word_.empty()) in_word_ = false;
    for (std::size_t i = 0; i < value.size(); ++i) {
      word_ += value[i];
      in_word_ = true;
      if (i + 1 < value.size()) STEPCAST_TRY(end_word());
    }
    return Ok{};
  }
  const std::string text = joined_words(value);
  // An unknown command output is one word, and the value of an assignment is not split.
  const bool assigns =
      array_.empty() && is_assignment(word_) && (command_.empty() || declares(command_.front()));
  const bool has_output = text.find("$(") != std::string::npos;
  int depth = 0;
  for (const char c : text) {
    if (has_output) depth += c == '(' ? 1 : c == ')' ? -1 : 0;
    if (!quoted && !assigns && depth <= 0 && is_space(c)) {
      STEPCAST_TRY(end_word());
    } else {
      add(c);
    }
  }
  return Ok{};
}

}  // namespace stepcast::detail
