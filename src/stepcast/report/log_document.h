// A training log as a person reads it (report/document.h; report/inspect_answer.h has its JSON), and the forecast of what it
// ran, held against it.
#pragma once

#include <string>

#include "stepcast/analyze/compare.h"
#include "stepcast/logs/logged_run.h"
#include "stepcast/report/document.h"
#include "stepcast/report/forecast_document.h"

namespace stepcast {

[[nodiscard]] ReportDocument log_document(const LoggedRun& run);

// What a log ran, the forecast of it, what was measured, the difference and its likely reason. `comparison` is that of the
// forecast (a) with the log (b). A page goes on with what that of the forecast alone shows, a terminal begins with it.
[[nodiscard]] ReportDocument log_forecast_document(const Forecast& forecast, const LoggedRun& run,
                                                   const Comparison& comparison,
                                                   const ForecastIllustrations& illustrations = {});
// stepcast.log_forecast/1 (docs/schemas/log_forecast.json).
[[nodiscard]] std::string predicted_log_json(const Forecast& forecast, const LoggedRun& run,
                                             const Comparison& comparison);
[[nodiscard]] std::string predicted_log_schema();

}  // namespace stepcast
