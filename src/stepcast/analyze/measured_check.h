// "Is my number normal?": compares a measured step with the forecast of the job that it is said to belong to.
//
//   STEPCAST_ASSIGN(const MeasuredCheck check, check_measured(steps, model, layout, 5200));
//   check.sentence             "5,200 ms is slow: 31 % more than the forecast of 3,970 ms ..."
//   check.causes.front().what  "all activations are recomputed": what would take 5,150 ms
//
// A step outside the interval p10 to p90 is slow or fast. For such a step, each cause in the table of
// measured_check.cpp changes one thing of the job or the machine and is forecast, too. By Bayes' rule, a
// cause is more likely if its prior is higher and if its forecast comes nearer to the measured step, in units
// of its own interval. "By chance" is one of the causes.
#pragma once

#include "stepcast/analyze/forecast.h"
#include "stepcast/base/result.h"

namespace stepcast {

class StepModel;
struct Layout;
struct Transformer;

// `steps` must be without measured steps (anchors). Errors: those of StepModel::predict().
[[nodiscard]] Result<MeasuredCheck> check_measured(const StepModel& steps, const Transformer& model,
                                                   const Layout& layout, double measured_ms);

}  // namespace stepcast
