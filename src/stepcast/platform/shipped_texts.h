// Which texts are those of the platform files that this build was made with: their JSON is known to be valid, and tests
// read every record of them (tests/lab/shipped_kernels_test.cpp), so that neither has to be found out again by every
// program. A shipped file that somebody edited is a file like any other.
#pragma once

#include <string_view>

namespace stepcast {

[[nodiscard]] bool is_shipped_text(std::string_view text);

}  // namespace stepcast
