// A ReportDocument as one HTML file that loads nothing: styles, script and pictures are inside, and its
// Content-Security-Policy forbids everything else. It can be read and printed without the script.
//
//   const std::string page = report_html(document);
//   embedded_json(page)          // the answer again, as --json prints it
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "stepcast/report/document.h"

namespace stepcast {

// The page as text.
[[nodiscard]] std::string report_html(const ReportDocument& document);

// The same for a notebook: one <div> with its styles, without script and JSON.
[[nodiscard]] std::string report_fragment(const ReportDocument& document);

// The JSON inside a page that report_html() wrote; nothing for other texts.
[[nodiscard]] std::optional<std::string> embedded_json(std::string_view page);
// The same as a view into `page`, without a copy. "<" inside strings is still escaped.
[[nodiscard]] std::optional<std::string_view> embedded_json_view(std::string_view page);

}  // namespace stepcast
