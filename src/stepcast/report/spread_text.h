// Distributions of a step as a person reads them: over recorded steps, and over straggler scenarios.
#pragma once

#include <string>
#include <string_view>

#include "stepcast/analyze/forecast.h"

namespace stepcast {

// Begins with an empty line. Every step where there are at most 12 or `verbose`.
[[nodiscard]] std::string series_text(const ForecastSeries& series, bool verbose = false);
// `ranks`: rank classes of the forecast, for their names.
[[nodiscard]] std::string scenarios_text(const ForecastScenarios& scenarios,
                                         const std::vector<ForecastClass>& ranks);

// A part of ForecastSpreadShare or of a tail's cause in words.
[[nodiscard]] std::string_view spread_part_name(std::string_view part);

}  // namespace stepcast
