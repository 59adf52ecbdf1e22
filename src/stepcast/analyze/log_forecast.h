// A training log as a Forecast of kind "log": what predictions and replays compare with.
#pragma once

#include "stepcast/analyze/forecast.h"
#include "stepcast/logs/logged_run.h"

namespace stepcast {

// Step time: the median of the steps, p10 and p90 those of the steps. No rank classes: a log does not tell where the
// time goes. Layout, model and GPUs where the log tells them; memory where it tells the peak.
[[nodiscard]] Forecast log_forecast(const LoggedRun& run);

}  // namespace stepcast
