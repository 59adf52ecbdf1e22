// The forecast of a recommendation model besides its step time: memory, throughput, coverage and time by
// cause, and the gain from faster resources.
#pragma once

#include "stepcast/analyze/forecast.h"
#include "stepcast/analyze/make_forecast.h"
#include "stepcast/base/result.h"
#include "stepcast/platform/platform.h"
#include "stepcast/recommend/dlrm_step.h"

namespace stepcast {

// `step` is the prediction for the sharding that `steps` predicted last; the breakdown uses its simulated
// timeline.
[[nodiscard]] Forecast dlrm_forecast(const DlrmStepModel& steps, const DlrmStep& step,
                                     const Platform& platform, const ShardingPlan& plan,
                                     const ForecastOptions& options = {});

// How the step time reacts to faster resources, for the sharding that `steps` predicted last.
[[nodiscard]] Result<Sensitivity> dlrm_sensitivity(const DlrmStepModel& steps);

}  // namespace stepcast
