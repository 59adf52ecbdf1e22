// The command that a launch script runs, word by word, for readers of other software's command lines.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "stepcast/base/result.h"

namespace stepcast {

// The words of the command that trains, as far as a part of Bash's language tells them (detail/shell/script.h states it);
// of a line without a script all its words. Errors: a quote that is not closed, a script that grows without end.
[[nodiscard]] Result<std::vector<std::string>> words_of_launch_script(std::string_view script);

}  // namespace stepcast
