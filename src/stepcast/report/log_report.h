// A training log as a person reads it (report/inspect_answer.h has its JSON), and the forecast of it.
#pragma once

#include <string>

#include "stepcast/analyze/compare.h"
#include "stepcast/logs/logged_run.h"

namespace stepcast {

[[nodiscard]] std::string log_text(const LoggedRun& run);

// "llama-3-70b (70,553,706,496 parameters) on 512 GPUs, tensor 4 x pipeline 4 x ...": what it ran.
[[nodiscard]] std::string logged_job_text(const LoggedRun& run);

// What a log ran, the forecast of it, what was measured, the difference and its likely reason. `comparison` is that of
// the forecast (a) with the log (b).
[[nodiscard]] std::string predicted_log_text(const Forecast& forecast, const LoggedRun& run,
                                             const Comparison& comparison);
// stepcast.log_forecast/1 (docs/schemas/log_forecast.json).
[[nodiscard]] std::string predicted_log_json(const Forecast& forecast, const LoggedRun& run,
                                             const Comparison& comparison);
[[nodiscard]] std::string predicted_log_schema();

}  // namespace stepcast
