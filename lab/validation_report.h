// Output of the results of suites: a table for people, a JSON object (docs/json.md) for programs, and rows as CSV.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "stepcast/report/document.h"

#include "lab/suite.h"

namespace stepcast::detail {

// Parts that accuracy_page also uses.
// Text of `must` and `aim`: {"<= 6", "<= 4"}, {"75 to 90", ""}.
[[nodiscard]] std::pair<std::string, std::string> bounds_text(const Target& target);

[[nodiscard]] ReportTable targets_table(const std::vector<Target>& targets);

// Unscored rows, one line for each reason.
[[nodiscard]] std::vector<std::string> skipped_lines(const SuiteResult& result);

// The text as a CSV field, in quotes if needed.
[[nodiscard]] std::string csv_field(const std::string& text);

}  // namespace stepcast::detail

namespace stepcast {

[[nodiscard]] std::string validation_text(const SuiteResult& result);
[[nodiscard]] std::string validation_json(const SuiteResult& result);
// CSV with the columns suite,test,set,row,unit,measured,predicted,p10,p90.
[[nodiscard]] std::string validation_rows_csv(std::span<const SuiteResult> results);
// Several results as one JSON object: {"suites": [...]}.
[[nodiscard]] std::string validation_json(std::span<const SuiteResult> results);
// JSON schema of one or several results, as in docs/schemas/validate.json.
[[nodiscard]] std::string validation_schema();

}  // namespace stepcast
