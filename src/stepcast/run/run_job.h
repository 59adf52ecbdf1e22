// What a run needs to know of a described job: its checkpoint from model and layout, its ranks from layout and platform.
#pragma once

#include "stepcast/base/result.h"
#include "stepcast/platform/platform.h"
#include "stepcast/run/run_forecast.h"
#include "stepcast/workload/layout.h"
#include "stepcast/workload/transformer.h"

namespace stepcast {

// A checkpoint holds what is trained once: weights in the type of the computation, master weights, and what the optimizer
// keeps (zero3: one copy of the weights). Adapters are written without their frozen base. Errors: those of step_work().
[[nodiscard]] Result<RunJob> run_job_of(const Transformer& model, const Layout& layout,
                                        const Platform& platform, double step_s);

}  // namespace stepcast
