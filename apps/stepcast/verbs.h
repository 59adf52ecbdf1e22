// The verbs of the command line: `stepcast VERB ...`.
//
// To add a verb, write one file here and one line in verbs.def. The file declares the flags, and returns the
// action to run after parsing:
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
// An action writes its result to standard output and returns an exit code, or returns an Error. It does not print
// errors and does not exit: main() turns an Error into one line on standard error and the exit code kBadInput.
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

// Exit codes, stable for scripts. A verb may document additional ones from 3 on.
inline constexpr int kSuccess = 0;
inline constexpr int kInternalError = 1;  // a bug, or not enough memory or disk space
inline constexpr int kBadInput = 2;       // wrong usage, or a file that cannot be used
inline constexpr int kDoesNotFit = 3;     // predict --require-fit: exceeds the memory of the GPUs
inline constexpr int kDiffers = 4;        // compare --fail-above: the step times differ by more

// Writes formatted text to standard output without terminal controls, because texts from traces and platform
// files may contain escape sequences. Write errors are reported at the end (command_line.cpp).
void print_text(std::string_view text);
[[nodiscard]] std::string without_controls(std::string_view text);
// The text with verdict lines in terminal colours.
[[nodiscard]] std::string coloured(std::string_view text);
// "stepcast: error:", in red on a terminal.
[[nodiscard]] std::string error_prefix(std::string_view program);
template <class... Arguments>
void print(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  print_text(fmt::format(format, std::forward<Arguments>(arguments)...));
}

// The version, with the commit if it is known: "0.2.0 (309da24bf073)".
[[nodiscard]] std::string version_text();

// The width of the terminal in characters; kNoLimit if standard output is not a terminal.
[[nodiscard]] std::size_t terminal_columns();

// The text of --help in lines of at most `columns` characters. Descriptions continue below their beginning,
// commands after a backslash.
[[nodiscard]] std::string help_in_columns(std::string_view help, std::size_t columns);

// Prints "Timeline written to step.json: open it at ..." after an answer.
void print_timeline_note(std::string_view file);

using Action = std::function<Result<int>()>;

struct Verb {
  std::string name;
  std::string summary;  // one line for `stepcast --help`
  std::function<Action(CLI::App&)> declare;
  // For verbs of another program: handles all words after the program name, unparsed. Replaces the declaration.
  std::function<Result<int>(std::span<const char* const> words)> forward{};
  bool reads_flags_of_all = false;  // the action itself reads the flags of other verbs
};

// A program with verbs, as its main() passes it to run_command_line().
struct Program {
  std::string name;         // "stepcast"
  std::string description;  // first and last lines of its help
  std::string footer;
  std::vector<Verb> verbs;
  std::span<const VerbHelp> help{};  // of the verbs
  std::string first_screen{};        // output without arguments; empty: a verb is required
};

#define STEPCAST_VERB(name) Verb name##_verb();
#include "verbs.def"  // NOLINT(bugprone-suspicious-include): a list that is read twice
#undef STEPCAST_VERB

// `stepcast` with all verbs in verbs.def.
Program stepcast_program();

}  // namespace stepcast::cli
