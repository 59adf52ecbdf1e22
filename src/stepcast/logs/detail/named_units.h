// Names and values that say themselves in which unit they tell the time of a step: "step_time_ms", "seconds per iteration: 2.5",
// "step time: 2.5 s", "400 ms/step", "0.4 steps/s". Columns of tables and lines of programs that stepcast does not know.
#pragma once

#include <optional>
#include <string_view>

#include "stepcast/logs/detail/step_columns.h"
#include "stepcast/logs/detail/step_lines.h"

namespace stepcast::detail {

// The unit in a name, in lower case; nothing where it has none, or where it is the time of something else than a step.
[[nodiscard]] std::optional<TimeColumn> unit_in_name(std::string_view name);

// `line` without colours and prefixes. Nothing where it does not tell a step and its time with a unit.
[[nodiscard]] std::optional<StepLine> line_with_units(std::string_view line);

}  // namespace stepcast::detail
