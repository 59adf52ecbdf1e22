// Results of validation suites: a table for people, the contract's JSON object for programs (docs/json.md),
// and rows as CSV.
#pragma once

#include <span>
#include <string>

#include "lab/suite.h"

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
