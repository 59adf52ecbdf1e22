// Which resource a step should have more of: the section of a forecast, and the same as JSON.
#pragma once

#include <string>

#include "stepcast/analyze/forecast.h"
#include "stepcast/report/document.h"

namespace stepcast {

void add_sensitivity(ReportDocument& document, const Sensitivity& sensitivity, Shown on);
// One JSON object, docs/schemas/sensitivity.json.
[[nodiscard]] std::string sensitivity_json(const Sensitivity& sensitivity);
[[nodiscard]] std::string sensitivity_schema();

}  // namespace stepcast
