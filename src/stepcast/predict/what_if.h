// Forecasts of machines with faster parts: "nvlink=2x" makes traffic inside nodes twice as fast.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "stepcast/base/result.h"
#include "stepcast/platform/platform.h"
#include "stepcast/predict/step_assumptions.h"

namespace stepcast {

// A factor of one kind of model alone, such as reuse=2x of recommendation models: `factor` becomes 0.1 to 100 times as large.
struct WhatIfFactor {
  std::string_view name;
  double* factor;
};

// Every change is NAME=FACTOR or NAME=FACTORx, 0.01 to 100 times as fast, of gemm, attention, memory_bound, compute
// (products and attention), gpu (these and what memory bounds, copies too), communication, nvlink (inside nodes), network
// (between nodes) or host (CPU time); or of what the model has as its `own`. Changes of one part multiply. The error names the
// change that cannot be understood.
[[nodiscard]] Status apply_what_if(std::span<const std::string> changes, StepAssumptions& assumptions,
                                   std::span<const WhatIfFactor> own = {});

// All that GPUs compute takes as much longer as a power limit of each makes it (cost/node_power.h), with a wider band.
// Errors: those of power_under().
[[nodiscard]] Status apply_power_limit(const Platform& platform, double limit_W,
                                       StepAssumptions& assumptions);

}  // namespace stepcast
