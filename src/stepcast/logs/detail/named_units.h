// Names and values that contain the unit of a step time: "step_time_ms", "seconds per iteration: 2.5", "step
// time: 2.5 s", "400 ms/step", "0.4 steps/s". Used for table columns and for lines of unknown programs.
#pragma once

#include <optional>
#include <string_view>

#include "stepcast/logs/detail/step_columns.h"
#include "stepcast/logs/detail/step_lines.h"

namespace stepcast::detail {

// The unit in a name in lower case. Empty if it has no unit, or is the time of something other than a step.
[[nodiscard]] std::optional<TimeColumn> unit_in_name(std::string_view name);

// Reads a `line` without colours and prefixes. Empty unless the line contains a step number and its time with
// a unit.
[[nodiscard]] std::optional<StepLine> line_with_units(std::string_view line);

}  // namespace stepcast::detail
