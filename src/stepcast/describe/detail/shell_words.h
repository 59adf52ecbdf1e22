// A command line as words, as a shell would cut it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "stepcast/base/result.h"

namespace stepcast::detail {

// Blanks and line breaks separate; quotes and backslashes hold together; a backslash before a line break
// continues the line; # begins a comment. Variables and commands in the line ($X, `x`) are errors, as their
// values are not known.
[[nodiscard]] Result<std::vector<std::string>> split_shell_words(std::string_view line);

}  // namespace stepcast::detail
