// The Forecast of a described step of a recommendation model.
#pragma once

#include "stepcast/analyze/forecast.h"
#include "stepcast/analyze/make_forecast.h"
#include "stepcast/base/result.h"
#include "stepcast/platform/platform.h"
#include "stepcast/predict/dlrm_step.h"

namespace stepcast {

// `step` is of the sharding that `steps` priced last.
[[nodiscard]] Forecast dlrm_forecast(const DlrmStepModel& steps, const DlrmStep& step,
                                     const Platform& platform, const ShardingPlan& plan,
                                     const ForecastOptions& options = {});

}  // namespace stepcast
