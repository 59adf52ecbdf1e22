#pragma once

#include <string_view>

namespace stepcast::cli {

// The commit that was built, as `git describe` has it; empty where neither git nor a source archive tells. No answer depends on
// it, and no other source does: another commit compiles one file anew.
[[nodiscard]] std::string_view commit();

}  // namespace stepcast::cli
