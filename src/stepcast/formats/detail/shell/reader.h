// Reads a shell script word by word: what it says of its variables and functions, and which commands it comes to. The
// grammar is that of script.h; a helper of script.cpp, whose launch_words() is what others call.
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

inline constexpr char kFunctionArguments[] = "@";  // the variable that holds those of a function

inline constexpr std::size_t kMostScriptBytes = std::size_t{1} << 20;  // of all words of a script together
inline constexpr int kMostCalls = 500;                                 // of functions, and rounds of loops
inline constexpr int kDeepestScript = 8;  // scripts in words, defaults in defaults

// What a script defines for itself.
struct ShellDefinitions {
  ShellVariables variables;
  std::map<std::string, std::string, std::less<>> functions;  // the text between the braces
  int n_calls = 0;
  // Of a script in place of a word: what it echoes, as long as all of that is known.
  bool captures = false;
  std::optional<std::string> echoed;
};

[[nodiscard]] std::string joined_words(const ShellWords& words);
[[nodiscard]] bool is_python_script(const std::string& word);

class ShellReader {
 public:
  // A script in a word or a function of another (`depth` above 0) shares what that one knows; `runs`: whether it does.
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
  // `NAME=(` begins an array; other brackets group commands.
  [[nodiscard]] Status opened();
  // Behind `NAME (`: keeps the text of `{ ... }` for when it is called.
  [[nodiscard]] bool define_function();
  [[nodiscard]] bool keep_body(const std::string& name, std::size_t from);
  // Runs the text of a function with its arguments.
  [[nodiscard]] Status call(const std::string& body, const ShellWords& words, bool surely);
  // $@, $1, $2, ...
  void set_arguments(ShellWords arguments);
  // `shift 2`; unknown arguments where it may not run.
  void shift(const ShellWords& words, bool surely);
  [[nodiscard]] Status closed();
  [[nodiscard]] Status separated(char c);
  // Lines that feed a command (`<< END`), up to the line with their last word.
  void skip_documents();
  // Leaves out `2>&1`, `> file`, `>> file`, `< file`.
  [[nodiscard]] Status redirected();
  // At `$` or a backquote.
  [[nodiscard]] Status expansion(bool quoted);
  // Of the function that runs; the script itself has none.
  [[nodiscard]] ShellWords arguments() const;
  static std::size_t closing(std::string_view text, char open, char close);
  // `$(cat << END ...)`, `$(echo ...)` and what functions and conditions echo are their text; what others print is not known.
  [[nodiscard]] Status command_output(std::string_view rest, bool quoted);
  // What a script echoes that runs nothing else; nothing where it does not say all of it.
  [[nodiscard]] std::optional<std::string> echoed(std::string_view script);
  [[nodiscard]] bool in_double_brackets() const;
  [[nodiscard]] Status arithmetic_command();
  [[nodiscard]] bool cut_out(std::string_view written, ShellWords& value) const;
  [[nodiscard]] std::optional<std::string> document_text(std::string_view rest);
  // Keeps what is written up to `last`, for whoever needs its value.
  [[nodiscard]] Status unknown_until(std::size_t last);
  // `inside` is NAME, NAME:-default, NAME[@], ...; `written` with its signs.
  [[nodiscard]] Status variable(std::string_view inside, std::string_view written, bool quoted);
  // A text with its variables; nothing if it is no text.
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
  // ShellWords that steer are taken away, assignments are done, and what remains is a command.
  [[nodiscard]] Status end_command();
  [[nodiscard]] Status run(ShellWords words, bool surely);
  // `for NAME in a b c; do ...; done`, at its end, where every word is known and nothing leaves the loop early. False: not
  // this, and the loop runs nobody knows how often.
  [[nodiscard]] Result<bool> repeat(const ShellWords& words);
  // With nothing in place of what `-z` and `-n` ask for, where no line sets it: `[ -z "$MODEL" ] && MODEL=...` sets it.
  [[nodiscard]] ShellWords without_unset(ShellWords words) const;
  // The text between `do` and its `done` from here on, and what is behind; nothing without one.
  [[nodiscard]] std::optional<std::string_view> loop_body(std::size_t& behind) const;
  // `bash -c "python pretrain_gpt.py ..."`: the command in the word stands behind what launches it, which says how
  // many GPUs there are.
  [[nodiscard]] Status open_up(ShellWords& words);
  std::string_view text_;
  std::size_t at_ = 0, n_bytes_ = 0;
  std::string word_, array_;  // array_: "NAME=" while its elements are read
  bool in_word_ = false, skips_word_ = false, takes_document_ = false, is_piped_ = false;
  int depth_ = 0;
  Truth base_;
  ShellFlow flow_;
  std::string reads_;                   // the variable that `read -d '' NAME << END` fills
  std::vector<std::string> documents_;  // last words of documents that begin on the next line
  ShellWords command_;
  std::vector<ShellWords> commands_;
  ShellDefinitions& defined_;
  ShellVariables& variables_;
};

}  // namespace stepcast::detail
