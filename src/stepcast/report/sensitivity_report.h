// Which resource a step should have more of: the table under a forecast, and the same as JSON.
#pragma once

#include <string>

#include "stepcast/analyze/resource_sensitivity.h"

namespace stepcast {

[[nodiscard]] std::string sensitivity_text(const Sensitivity& sensitivity);
// {"schema": "stepcast-sensitivity-1", "step_time_ms": ..., "resources": [...]}
[[nodiscard]] std::string sensitivity_json(const Sensitivity& sensitivity);

}  // namespace stepcast
