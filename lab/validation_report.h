// Results of validation suites: a table for people, the contract's JSON object for programs (docs/json.md),
// and rows as CSV.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "stepcast/report/document.h"

#include "lab/suite.h"

namespace stepcast::detail {

// Pieces that accuracy_page shares.
// Must and aim in words: {"<= 6", "<= 4"}, {"75 to 90", ""}.
[[nodiscard]] std::pair<std::string, std::string> bounds_text(const Target& target);

[[nodiscard]] ReportTable targets_table(const std::vector<Target>& targets);

// What was not scored, one line per reason.
[[nodiscard]] std::vector<std::string> skipped_lines(const SuiteResult& result);

// In quotes where the text needs them.
[[nodiscard]] std::string csv_field(const std::string& text);

}  // namespace stepcast::detail

namespace stepcast {

[[nodiscard]] std::string validation_text(const SuiteResult& result);
[[nodiscard]] std::string validation_json(const SuiteResult& result);
// suite,test,set,row,unit,measured,predicted,p10,p90
[[nodiscard]] std::string validation_rows_csv(std::span<const SuiteResult> results);
// Several results as one JSON object: {"suites": [...]}.
[[nodiscard]] std::string validation_json(std::span<const SuiteResult> results);
// Of both, as docs/schemas/validate.json holds it.
[[nodiscard]] std::string validation_schema();

}  // namespace stepcast
