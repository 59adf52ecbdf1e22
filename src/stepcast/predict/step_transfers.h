// What data-parallel ranks and pipeline stages exchange in a step: which transfers, how large, when, and how
// long they take.
#pragma once

#include "stepcast/base/result.h"
#include "stepcast/predict/priced_step.h"
#include "stepcast/predict/step_prices.h"
#include "stepcast/workload/layout.h"
#include "stepcast/workload/transformer.h"

namespace stepcast {

// Fills transfers, updates and everything of the schedule that follows from them. `step` holds the work, its
// placement and the chunks of the schedule.
[[nodiscard]] Status price_transfers(const Transformer& model, const Layout& layout, StepPricer& prices,
                                     PricedStep& step);

}  // namespace stepcast
