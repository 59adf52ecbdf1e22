// The style sheet and the script of reports. They are files in this folder, and the build embeds them into
// the library.
#pragma once

#include <string_view>

namespace stepcast {

[[nodiscard]] std::string_view report_style();
[[nodiscard]] std::string_view report_script();
// The hash of the script, "sha256-...", with which the Content-Security-Policy of a page allows it.
[[nodiscard]] std::string_view report_script_hash();

}  // namespace stepcast
