// "Is my number normal?": a measured step held against the forecast of the job that it is said to be of.
//
//   STEPCAST_ASSIGN(const MeasuredCheck check, check_measured(steps, model, layout, 5200));
//   check.sentence             "5,200 ms is slow: 31 % more than the forecast of 3,970 ms ..."
//   check.causes.front().what  "all activations are recomputed": what would take 5,150 ms
//
// Slow or fast is what lies outside of the band. Then every cause of the table in measured_check.cpp changes the job or the
// machine in one thing and is forecast, too: the likelier a cause is beforehand and the nearer its forecast comes to the
// measured step, in units of its own band, the more likely it is (Bayes' rule, with "by chance" as one of the causes).
#pragma once

#include "stepcast/analyze/forecast.h"
#include "stepcast/base/result.h"

namespace stepcast {

class StepModel;
struct Layout;
struct Transformer;

// `steps` without what was measured. Errors: those of StepModel::predict().
[[nodiscard]] Result<MeasuredCheck> check_measured(const StepModel& steps, const Transformer& model,
                                                   const Layout& layout, double measured_ms);

}  // namespace stepcast
