// The style sheet and the script of reports, as files beside this one; the build puts them into the library.
#pragma once

#include <string_view>

namespace stepcast {

[[nodiscard]] std::string_view report_style();
[[nodiscard]] std::string_view report_script();
// "sha256-...", as a Content-Security-Policy names the script.
[[nodiscard]] std::string_view report_script_hash();

}  // namespace stepcast
