// What `--help` prints: at most kLongestHelp lines. Verbs with more flags show the first ones and the names of the others;
// `--help-all` prints every flag.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include <CLI/CLI.hpp>

namespace stepcast::cli {

inline constexpr std::size_t kLongestHelp = 60;  // lines of kHelpColumns: two screens of a terminal
inline constexpr std::size_t kHelpColumns = 80;  // through a pager or into a file, as manual pages are

// Of one verb: "predict", "calibrate kernels".
struct VerbHelp {
  std::string_view verb;
  std::string_view examples;     // lines below `Examples:`
  std::string_view first_flags;  // "--model --gpus": what a beginner needs; of verbs with many flags
};

// The verbs of `stepcast`.
[[nodiscard]] std::span<const VerbHelp> stepcast_help();

// What `stepcast` prints without arguments: what it is, five commands to try and where the help is.
[[nodiscard]] std::string first_screen();

// The text of `--help` (`all`: of `--help-all`) of the verb `path` of `root`, whose flags are declared in `verb`. Verbs that
// `verbs` does not list are printed in full. Changes the groups of the flags and the footer of `verb`.
[[nodiscard]] std::string help_text(const CLI::App& root, CLI::App& verb, std::string_view path,
                                    std::span<const VerbHelp> verbs, bool all);

}  // namespace stepcast::cli
