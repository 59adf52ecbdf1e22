// The command that a launch script runs, as far as a small part of the shell's language tells it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "stepcast/base/result.h"

namespace stepcast::detail {

// Words of the command that trains: the one with a script in Python, of several the last that is called pretrain..., or
// the last. Without one all words, as of a line of flags. Understood: quotes, comments, continued lines, several
// commands, pipes, redirections and documents (left out), assignments, arrays, `$NAME`, `${NAME}`, `${NAME:-default}`,
// `${NAME[@]}`, `${NAME[2]}`, `$((...))`, `let`, `eval`, `bash -c "..."`, and `if`, `case`, `&&` and `||` where the
// script itself decides them. Nothing is run, and nothing comes from the environment. What is not known - a variable
// that the script does not set, or sets under a condition that it cannot decide, in a loop or in a function; the output
// of a command - stays as it is written (`${NAME}`), for whoever reads the words to refuse where it matters. Errors: a
// quote that is not closed, a zero byte, a script that grows without end.
[[nodiscard]] Result<std::vector<std::string>> launch_words(std::string_view script);

}  // namespace stepcast::detail
