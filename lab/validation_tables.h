// Pieces that validation_report and accuracy_page share.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "stepcast/report/document.h"

#include "lab/suite.h"

namespace stepcast::detail {

// Must and aim in words: {"<= 6", "<= 4"}, {"75 to 90", ""}.
[[nodiscard]] std::pair<std::string, std::string> bounds_text(const Target& target);

[[nodiscard]] ReportTable targets_table(const std::vector<Target>& targets);

// What was not scored, one line per reason.
[[nodiscard]] std::vector<std::string> skipped_lines(const SuiteResult& result);

// In quotes where the text needs them.
[[nodiscard]] std::string csv_field(const std::string& text);

}  // namespace stepcast::detail
