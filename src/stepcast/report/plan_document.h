// The layouts of a training as text and as a page (report/document.h): step time against memory, what cannot be told
// apart, the flags to run what is chosen, and why the others are not in the list.
#pragma once

#include "stepcast/report/document.h"
#include "stepcast/report/plan_answer.h"

namespace stepcast {

[[nodiscard]] ReportDocument plan_document(const PlanAnswer& plan);
[[nodiscard]] ReportDocument training_document(const TrainingAnswer& training);

}  // namespace stepcast
