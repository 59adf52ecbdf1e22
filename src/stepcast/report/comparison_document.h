// How two steps differ, as text and as a page (report/document.h): a waterfall from one to the other, and what differs
// most.
#pragma once

#include <cstddef>
#include <string>

#include "stepcast/analyze/compare.h"
#include "stepcast/report/document.h"

namespace stepcast {

struct ComparisonAnswer {
  std::string a, b;                // names of what was compared
  std::string a_source, b_source;  // what their step times rest on: measured, simulated, fitted, ...
  Comparison comparison;
};
// What the step time of a forecast rests on; that of a replay is simulated, of recorded work.
[[nodiscard]] std::string step_source(const Forecast& forecast);
[[nodiscard]] ComparisonAnswer comparison_answer(std::string a_name, const Forecast& a, std::string b_name,
                                                 const Forecast& b);

// stepcast.comparison/1 (docs/schemas/comparison.json).
[[nodiscard]] std::string comparison_json(const ComparisonAnswer& answer);
[[nodiscard]] std::string comparison_schema();
// In a terminal each list has at most `rows` lines.
[[nodiscard]] ReportDocument comparison_document(const ComparisonAnswer& answer, std::size_t rows = 10);

// "computation: gemm x 1.09 (its 273.3 ms)": the likeliest of the explanations, at most `most` of them.
[[nodiscard]] std::string explanations_text(const Comparison& comparison, std::size_t most);

}  // namespace stepcast
