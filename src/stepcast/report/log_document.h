// A training log as a document (report/document.h; its JSON is in report/inspect_answer.h), and a comparison
// of the log with the forecast of its job.
#pragma once

#include <string>

#include "stepcast/analyze/compare.h"
#include "stepcast/logs/logged_run.h"
#include "stepcast/report/document.h"
#include "stepcast/report/forecast_document.h"

namespace stepcast {

// The content of a log: job, step times, memory.
[[nodiscard]] ReportDocument log_document(const LoggedRun& run);

// The job of a log, its forecast, the measured step, the difference and its likely reason. `comparison` must
// be that of the forecast (a) with the log (b). In a page, the sections of the forecast follow; in a terminal
// they come first.
[[nodiscard]] ReportDocument log_forecast_document(const Forecast& forecast, const LoggedRun& run,
                                                   const Comparison& comparison,
                                                   const ForecastIllustrations& illustrations = {});
// The same as JSON, stepcast.log_forecast/1 (docs/schemas/log_forecast.json), and its schema.
[[nodiscard]] std::string predicted_log_json(const Forecast& forecast, const LoggedRun& run,
                                             const Comparison& comparison);
[[nodiscard]] std::string predicted_log_schema();

}  // namespace stepcast
