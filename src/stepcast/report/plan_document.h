// A searched space of layouts as a page (report/document.h): time against memory, what cannot be told apart, flags to copy,
// why not the others. And GPUs and machines for a training: time against money.
#pragma once

#include "stepcast/plan/layout_plan.h"
#include "stepcast/plan/training_plan.h"
#include "stepcast/report/document.h"
#include "stepcast/report/plan_report.h"

namespace stepcast {

// `plan` has a layout that runs and fits.
[[nodiscard]] ReportDocument plan_document(const LayoutPlan& plan, const PlanSubject& subject);
[[nodiscard]] ReportDocument training_document(const TrainingPlan& plan, const TrainingGoal& goal);

}  // namespace stepcast
