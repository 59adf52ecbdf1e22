// Changes assumptions for faster or slower hardware: "nvlink=2x" makes traffic inside nodes twice as fast.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "stepcast/base/result.h"
#include "stepcast/platform/platform.h"
#include "stepcast/predict/step_assumptions.h"

namespace stepcast {

// A factor that only one kind of model has, such as reuse=2x of recommendation models. `factor` is multiplied
// by 0.1 to 100.
struct WhatIfFactor {
  std::string_view name;
  double* factor;
};

// Applies changes of the form NAME=FACTOR or NAME=FACTORx, from 0.01 to 100 times as fast. Names: gemm,
// attention, memory_bound, compute (GEMMs and attention), gpu (compute and memory_bound, including copies),
// communication, nvlink (inside nodes), network (between nodes), host (CPU time), and the names in `own`.
// Changes that affect the same factor multiply. Errors: a name given twice; an unknown name or invalid
// factor, with its text.
[[nodiscard]] Status apply_what_if(std::span<const std::string> changes, StepAssumptions& assumptions,
                                   std::span<const WhatIfFactor> own = {});

// Slows down all GPU computation as a power limit of `limit_W` watts per GPU does (cost/node_power.h), and
// widens the band. Errors: those of power_under().
[[nodiscard]] Status apply_power_limit(const Platform& platform, double limit_W,
                                       StepAssumptions& assumptions);

}  // namespace stepcast
