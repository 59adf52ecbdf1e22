// Describes a job for a run forecast: its checkpoint from model and layout, its ranks from layout and platform.
#pragma once

#include "stepcast/base/result.h"
#include "stepcast/platform/platform.h"
#include "stepcast/run/run_forecast.h"
#include "stepcast/workload/layout.h"
#include "stepcast/workload/transformer.h"

namespace stepcast {

// A checkpoint contains one copy of the trained state: weights in the compute type, master weights and optimizer states (zero3:
// one copy of the weights). LoRA adapters are saved without their frozen base. Errors: those of step_work().
[[nodiscard]] Result<RunJob> run_job_of(const Transformer& model, const Layout& layout,
                                        const Platform& platform, double step_s);

}  // namespace stepcast
