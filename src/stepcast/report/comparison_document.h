// How two steps differ as a page (report/document.h): a waterfall from one to the other, and what differs most.
#pragma once

#include <string>

#include "stepcast/analyze/compare.h"
#include "stepcast/report/document.h"

namespace stepcast {

struct ComparisonNames {
  std::string a, b;                    // as they were asked for
  std::string a_source{}, b_source{};  // what their step times rest on: measured, fitted, ...
};

// `verdict` and `json` as the text and --json have them.
[[nodiscard]] ReportDocument comparison_document(const Comparison& comparison, const ComparisonNames& names,
                                                 std::string verdict, std::string json);

}  // namespace stepcast
