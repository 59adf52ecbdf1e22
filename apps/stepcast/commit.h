#pragma once

#include <string_view>

namespace stepcast::cli {

// The commit of this build, as `git describe` prints it; empty if it is not known. No answer depends on it,
// and only one source file uses it, so that a new commit recompiles only that file.
[[nodiscard]] std::string_view commit();

}  // namespace stepcast::cli
