// Recognises the texts of the platform files that this build was made with. Their JSON is known to be valid,
// and tests read every record of them (tests/platform/shipped_platforms_test.cpp,
// tests/lab/shipped_kernels_test.cpp), so programs need not check them again. An edited copy of a shipped
// file is treated as a user's file.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "stepcast/base/json_value.h"

namespace stepcast {

// Positions of the long values of a shipped text; none for any other text.
[[nodiscard]] std::optional<std::span<const JsonStretch>> shipped_text(std::string_view text);

}  // namespace stepcast
