// Several steps of one job on a page: recorded ones, each by itself, and scenarios that were drawn.
#pragma once

#include "stepcast/analyze/forecast.h"
#include "stepcast/report/document.h"

namespace stepcast::detail {

// Sections for the series and for the scenarios, where the forecast has them. A terminal shows every step where there are at
// most 12 or `verbose`.
void add_distributions(ReportDocument& document, const Forecast& forecast, bool verbose = false);

}  // namespace stepcast::detail
