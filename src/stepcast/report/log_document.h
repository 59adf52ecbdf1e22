// The forecast of what a training log ran, held against the log, as a page (report/document.h).
#pragma once

#include "stepcast/analyze/compare.h"
#include "stepcast/logs/logged_run.h"
#include "stepcast/report/document.h"
#include "stepcast/report/forecast_document.h"

namespace stepcast {

// `comparison` is that of the forecast (a) with the log (b). What the page of the forecast alone shows follows below.
[[nodiscard]] ReportDocument log_forecast_document(const Forecast& forecast, const LoggedRun& run,
                                                   const Comparison& comparison,
                                                   const ForecastIllustrations& illustrations = {});

}  // namespace stepcast
