// What is said of the step of a recommendation model beside its time: its Forecast, and what it would gain from faster
// resources.
#pragma once

#include "stepcast/analyze/forecast.h"
#include "stepcast/analyze/make_forecast.h"
#include "stepcast/base/result.h"
#include "stepcast/platform/platform.h"
#include "stepcast/recommend/dlrm_step.h"

namespace stepcast {

// `step` is of the sharding that `steps` priced last.
[[nodiscard]] Forecast dlrm_forecast(const DlrmStepModel& steps, const DlrmStep& step,
                                     const Platform& platform, const ShardingPlan& plan,
                                     const ForecastOptions& options = {});

// Of the sharding that `steps` priced last.
[[nodiscard]] Result<Sensitivity> dlrm_sensitivity(const DlrmStepModel& steps);

}  // namespace stepcast
