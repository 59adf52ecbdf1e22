// Which texts are those of the platform files that this build was made with: their JSON is known to be valid, and tests
// read every record of them (tests/platform/shipped_platforms_test.cpp, tests/lab/shipped_kernels_test.cpp), so that neither
// has to be found out again by every program. A shipped file that somebody edited is a file like any other.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "stepcast/base/json_value.h"

namespace stepcast {

// Where the long values of a shipped text are; nothing of any other text.
[[nodiscard]] std::optional<std::span<const JsonStretch>> shipped_text(std::string_view text);

}  // namespace stepcast
