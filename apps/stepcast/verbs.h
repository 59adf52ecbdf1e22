// The verbs of the command line: `stepcast VERB ...`.
//
// A new verb is one file here and one line in verbs.def. The file declares its flags, and returns what to do
// once they are parsed:
//
//   // apps/stepcast/replay.cpp
//   namespace stepcast::cli {
//   namespace {
//   struct Options { std::string directory; bool json = false; };
//   Result<int> run(const Options& options) { ...; return kSuccess; }
//   }  // namespace
//
//   Verb replay_verb() {
//     return {"replay", "simulate recorded ranks and compare with the measured step", [](CLI::App& app) {
//               auto options = std::make_shared<Options>();      // lives as long as the action below
//               app.add_option("DIR", options->directory, "folder with one trace per rank")->required();
//               app.add_flag("--json", options->json, "print one JSON object");
//               return [options] { return run(*options); };
//             }};
//   }
//   }  // namespace stepcast::cli
//
// An action writes its result to standard output and returns an exit code, or the Error that stopped it. It
// does not print errors and does not call exit: main() turns an Error into one line on standard error and the
// code kBadInput.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "stepcast/base/result.h"

#include "help.h"

namespace stepcast::cli {

// Exit codes that scripts can rely on. A verb may add its own from 3 on and must document them.
inline constexpr int kSuccess = 0;
inline constexpr int kInternalError = 1;  // a bug, or the machine ran out of memory or disk
inline constexpr int kBadInput = 2;       // wrong usage, or a file that cannot be used
inline constexpr int kDoesNotFit = 3;     // predict --require-fit: not into the memory of the GPUs
inline constexpr int kDiffers = 4;        // compare --fail-above: the step times differ by more

// Writes to standard output what `fmt::format` gives, without what a terminal would obey: texts out of traces and
// platform files may hold escape sequences. Whether all of it could be written is seen at the end (command_line.cpp).
void print_text(std::string_view text);
[[nodiscard]] std::string without_controls(std::string_view text);
// Lines that tell a verdict as a terminal shows them in colours.
[[nodiscard]] std::string coloured(std::string_view text);
// "stepcast: error:", on a terminal in red.
[[nodiscard]] std::string error_prefix(std::string_view program);
template <class... Arguments>
void print(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  print_text(fmt::format(format, std::forward<Arguments>(arguments)...));
}

// "0.2.0", and the commit where it is known: "0.2.0 (309da24bf073)".
[[nodiscard]] std::string version_text();

// Characters in a line of the terminal that standard output is; kNoLimit where it is none.
[[nodiscard]] std::size_t terminal_columns();

// The text of --help in lines of so many characters: what a flag means goes on below its beginning, a command behind a
// backslash.
[[nodiscard]] std::string help_in_columns(std::string_view help, std::size_t columns);

// "Timeline written to step.json: open it at ...", behind the text of an answer.
void print_timeline_note(std::string_view file);

using Action = std::function<Result<int>()>;

struct Verb {
  std::string name;
  std::string summary;  // one line for `stepcast --help`
  std::function<Action(CLI::App&)> declare;
  // Instead, of a verb that another program has: what to do with all words behind the name of this program, unread.
  std::function<Result<int>(std::span<const char* const> words)> forward{};
  bool reads_flags_of_all = false;  // what other verbs declare is read by the action
};

// A program of verbs, as its main() hands it to run_command_line().
struct Program {
  std::string name;         // "stepcast"
  std::string description;  // the first and the last lines of its help
  std::string footer;
  std::vector<Verb> verbs;
  std::span<const VerbHelp> help{};  // of the verbs
  std::string first_screen{};        // without arguments; where it is empty a verb has to be given
};

#define STEPCAST_VERB(name) Verb name##_verb();
#include "verbs.def"  // NOLINT(bugprone-suspicious-include): a list that is read twice
#undef STEPCAST_VERB

// `stepcast` with all of verbs.def, in its order.
Program stepcast_program();

}  // namespace stepcast::cli
