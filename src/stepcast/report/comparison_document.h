// A comparison of two steps as text and as a page (report/document.h): a waterfall from one to the other, and
// the largest differences.
#pragma once

#include <cstddef>
#include <string>

#include "stepcast/analyze/compare.h"
#include "stepcast/report/document.h"

namespace stepcast {

// The answer of `stepcast compare`.
struct ComparisonAnswer {
  std::string a, b;                // names of the two forecasts
  std::string a_source, b_source;  // the sources of their step times: measured, simulated, fitted, ...
  Comparison comparison;
};
// The source of the step time of a forecast. That of a replay is "simulated", although its work was recorded.
[[nodiscard]] std::string step_source(const Forecast& forecast);
// Compares two forecasts. The verdict includes notes of logs about contradictions in them.
[[nodiscard]] ComparisonAnswer comparison_answer(std::string a_name, const Forecast& a, std::string b_name,
                                                 const Forecast& b);

// The answer as JSON, stepcast.comparison/1 (docs/schemas/comparison.json), and its schema.
[[nodiscard]] std::string comparison_json(const ComparisonAnswer& answer);
[[nodiscard]] std::string comparison_schema();
// The answer as a document. `rows`: the most lines per list in a terminal.
[[nodiscard]] ReportDocument comparison_document(const ComparisonAnswer& answer, std::size_t rows = 10);

// The most likely explanations, at most `most`: "computation: gemm x 1.09 (its 273.3 ms)".
[[nodiscard]] std::string explanations_text(const Comparison& comparison, std::size_t most);

}  // namespace stepcast
