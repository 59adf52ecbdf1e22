// Transfers between data-parallel ranks and between pipeline stages in a step: which ones, their sizes, when
// they run and how long they take.
#pragma once

#include "stepcast/base/result.h"
#include "stepcast/predict/priced_step.h"
#include "stepcast/predict/step_prices.h"
#include "stepcast/workload/layout.h"
#include "stepcast/workload/transformer.h"

namespace stepcast {

// Fills transfers, updates and all parts of the schedule that follow from them. `step` must contain the work,
// its placement and the chunks of the schedule. Errors: those of StepPricer::price().
[[nodiscard]] Status price_transfers(const Transformer& model, const Layout& layout, StepPricer& prices,
                                     PricedStep& step);

}  // namespace stepcast
