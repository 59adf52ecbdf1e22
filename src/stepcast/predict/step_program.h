// A described step as a Program: every operation and transfer of every micro-batch a task, one rank class per
// pipeline stage.
//
//   STEPCAST_ASSIGN(const PricedStep step, steps.price(model, layout));
//   STEPCAST_ASSIGN(const Program program, step_program(step, layout, steps.pricer()));
//   Costs costs{program};         // the prices
//
// The engine simulates it like a recorded one, and its end is the step that ScheduleEvaluator finds by
// recurrences (tests hold both to 1e-9). Lanes of a rank: computation, transfers inside a layer, weights and
// gradients, activations sent and received in both directions.
#pragma once

#include "stepcast/base/result.h"
#include "stepcast/predict/step_model.h"
#include "stepcast/program/program.h"

namespace stepcast {

// Ranks of a class do the same at the same time, so transfers among them are tasks of their own lane; what
// stages wait for each other are collectives. `layout` as it was priced.
[[nodiscard]] Result<Program> step_program(const PricedStep& step, const Layout& layout, StepPricer& pricer);

}  // namespace stepcast
