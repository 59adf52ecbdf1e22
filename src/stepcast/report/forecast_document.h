// A Forecast as a page (report/document.h): what it says, where the time goes, memory, schedule, sensitivity, and what
// every number rests on.
#pragma once

#include "stepcast/analyze/forecast.h"
#include "stepcast/analyze/resource_sensitivity.h"
#include "stepcast/analyze/step_picture.h"
#include "stepcast/report/document.h"

namespace stepcast {

// What a forecast alone does not hold; null where it is not there.
struct ForecastIllustrations {
  const Sensitivity* sensitivity = nullptr;
  const StepPictures* pictures = nullptr;
};

[[nodiscard]] ReportDocument forecast_document(const Forecast& forecast,
                                               const ForecastIllustrations& illustrations = {});

// One sentence: how long, whether it fits, what costs most.
[[nodiscard]] std::string forecast_verdict(const Forecast& forecast);

}  // namespace stepcast
