// Reads a shell script word by word and executes what can be executed without running anything: variables,
// functions, loops over known words. The grammar is in script.h. Other code calls launch_words() of script.cpp.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "stepcast/base/result.h"
#include "stepcast/formats/detail/shell/arithmetic.h"
#include "stepcast/formats/detail/shell/flow.h"

namespace stepcast::detail {

inline constexpr char kFunctionArguments[] = "@";  // name of the variable with the arguments of a function

// Limit for all words of a script together.
inline constexpr std::size_t kMostScriptBytes = std::size_t{1} << 20;
inline constexpr int kMostCalls = 500;    // limit for function calls and loop rounds
inline constexpr int kDeepestScript = 8;  // limit for scripts in words and defaults in defaults

// What a script defines. Shared by the readers of nested scripts.
struct ShellDefinitions {
  ShellVariables variables;
  std::map<std::string, std::string, std::less<>> functions;  // the text between the braces
  int n_calls = 0;
  // For a script in $(...): its echoed text, as long as that is completely known.
  bool captures = false;
  std::optional<std::string> echoed;
};

// The words separated by blanks; and whether a word ends with .py.
[[nodiscard]] std::string joined_words(const ShellWords& words);
[[nodiscard]] bool is_python_script(const std::string& word);

// The reader of one script text. Errors: unclosed quotes and brackets, zero bytes, exceeded limits.
class ShellReader {
 public:
  // `depth` is above 0 for a script inside a word or function of another one; they share `defined`. `runs`:
  // whether the script runs at all.
  ShellReader(std::string_view text, ShellDefinitions& defined, int depth = 0, Truth runs = Truth::yes)
      : text_(text), depth_(depth), base_(runs), defined_(defined), variables_(defined.variables) {}
  [[nodiscard]] Result<std::vector<ShellWords>> commands();

 private:
  [[nodiscard]] char peek(std::size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }
  [[nodiscard]] Status step();
  void add(char c) {
    word_ += c;
    in_word_ = true;
  }
  [[nodiscard]] Status escaped();
  [[nodiscard]] Status single_quoted();
  [[nodiscard]] Status double_quoted();
  // `NAME=(` begins an array. Other brackets group commands.
  [[nodiscard]] Status opened();
  // After `NAME (`: stores the text of `{ ... }` for later calls.
  [[nodiscard]] bool define_function();
  [[nodiscard]] bool keep_body(const std::string& name, std::size_t from);
  // Executes the body of a function with its arguments.
  [[nodiscard]] Status call(const std::string& body, const ShellWords& words, bool surely);
  // Sets $@, $1, $2, ...
  void set_arguments(ShellWords arguments);
  // Executes `shift 2`. The arguments become unknown if it may not run.
  void shift(const ShellWords& words, bool surely);
  [[nodiscard]] Status closed();
  [[nodiscard]] Status separated(char c);
  // Skips here-documents (`<< END`) up to their end markers.
  void skip_documents();
  // Drops `2>&1`, `> file`, `>> file`, `< file`.
  [[nodiscard]] Status redirected();
  // Handles the expansion at a `$` or backquote.
  [[nodiscard]] Status expansion(bool quoted);
  // Arguments of the current function. The script itself has none.
  [[nodiscard]] ShellWords arguments() const;
  static std::size_t closing(std::string_view text, char open, char close);
  // Handles $(...): `cat << END`, `echo`, and functions and conditions that only echo have a known output; others do not.
  [[nodiscard]] Status command_output(std::string_view rest, bool quoted);
  // The output of a script that only echoes; nothing if some part is unknown.
  [[nodiscard]] std::optional<std::string> echoed(std::string_view script);
  [[nodiscard]] bool in_double_brackets() const;
  [[nodiscard]] Status arithmetic_command();
  [[nodiscard]] bool cut_out(std::string_view written, ShellWords& value) const;
  [[nodiscard]] std::optional<std::string> document_text(std::string_view rest);
  // Keeps the text up to `last` unchanged, because its value is unknown.
  [[nodiscard]] Status unknown_until(std::size_t last);
  // Handles a variable. `inside` is NAME, NAME:-default, NAME[@], ...; `written` is the same with `$` and braces.
  [[nodiscard]] Status variable(std::string_view inside, std::string_view written, bool quoted);
  // A text with its variables expanded; nothing if it is malformed.
  [[nodiscard]] std::optional<std::string> expanded(std::string_view text);
  [[nodiscard]] Status keep(std::string_view written);
  [[nodiscard]] Status insert(const ShellWords& value, bool all, bool quoted);
  [[nodiscard]] Status end_word();
  [[nodiscard]] Status end_command_here();
  [[nodiscard]] bool expects_pattern() const { return array_.empty() && flow_.expects_pattern(); }
  static bool declares(const std::string& word) {
    return word == "export" || word == "local" || word == "declare" || word == "readonly" ||
           word == "typeset";
  }
  // Removes words of control flow, executes assignments, and runs the remaining command.
  [[nodiscard]] Status end_command();
  [[nodiscard]] Status run(ShellWords words, bool surely);
  // Executes `for NAME in a b c; do ...; done` if all words are known and nothing leaves the loop early.
  // False: another command, or a loop with an unknown number of rounds.
  [[nodiscard]] Result<bool> repeat(const ShellWords& words);
  // The words with empty operands of `-z` and `-n` for variables that the script never sets: `[ -z "$MODEL" ]
  // && MODEL=...` then sets it.
  [[nodiscard]] ShellWords without_unset(ShellWords words) const;
  // The text between `do` and its `done`, and in `behind` the position after it. Nothing if there is none.
  [[nodiscard]] std::optional<std::string_view> loop_body(std::size_t& behind) const;
  // `bash -c "python pretrain_gpt.py ..."`: the command inside the word replaces it. The launcher before it
  // stays, because it gives the number of GPUs.
  [[nodiscard]] Status open_up(ShellWords& words);
  std::string_view text_;
  std::size_t at_ = 0, n_bytes_ = 0;
  std::string word_, array_;  // array_: "NAME=" while the elements of an array are read
  bool in_word_ = false, skips_word_ = false, takes_document_ = false, is_piped_ = false;
  int depth_ = 0;
  Truth base_;
  ShellFlow flow_;
  std::string reads_;                   // variable that `read -d '' NAME << END` fills
  std::vector<std::string> documents_;  // end markers of here-documents that begin on the next line
  ShellWords command_;
  std::vector<ShellWords> commands_;
  ShellDefinitions& defined_;
  ShellVariables& variables_;
};

}  // namespace stepcast::detail
