// The output of `--help`: at most kLongestHelp lines. Verbs with more flags show the most important ones and
// the names of the others; `--help-all` shows all.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include <CLI/CLI.hpp>

namespace stepcast::cli {

inline constexpr std::size_t kLongestHelp = 60;  // lines of kHelpColumns: two terminal screens
inline constexpr std::size_t kHelpColumns = 80;  // for pagers and files, as in manual pages

// Help of one verb: "predict", "calibrate kernels".
struct VerbHelp {
  std::string_view verb;
  std::string_view examples;     // lines below `Examples:`
  std::string_view first_flags;  // "--model --gpus": the flags for beginners, for verbs with many flags
};

// Help of all verbs of `stepcast`.
[[nodiscard]] std::span<const VerbHelp> stepcast_help();

// The output of `stepcast` without arguments: what it is, five commands to try, and where to find help.
[[nodiscard]] std::string first_screen();

// The text of `--help` (with `all`: of `--help-all`) for the verb `path` of `root`. The flags must be declared in
// `verb`. Verbs that are not in `verbs` are printed in full. Changes the groups of the flags and the footer of `verb`.
[[nodiscard]] std::string help_text(const CLI::App& root, CLI::App& verb, std::string_view path,
                                    std::span<const VerbHelp> verbs, bool all);

}  // namespace stepcast::cli
