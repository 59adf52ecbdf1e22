// Kernels that run beside communication take longer, and what runs beside what depends on how long they take:
// a bounded fixed point outside the engine. Sweep, stretch the kernels that had company, sweep again.
#pragma once

#include "stepcast/base/result.h"
#include "stepcast/cost/interference.h"
#include "stepcast/program/program.h"
#include "stepcast/simulate/engine.h"

namespace stepcast {

struct InterferenceOptions {
  int max_sweeps = 4;
  double tolerance_us = 0.01;  // done when no duration changes by more
};

struct InterferenceResult {
  Timeline timeline;
  Costs costs;  // with the durations that the timeline was swept with
  int sweeps = 0;
  double residual_us = 0;       // largest change of a duration that a further sweep would make
  std::uint64_t stretched = 0;  // tasks of blocks that take longer than alone
};

// `alone`: durations without company. A kernel that spends o us beside a transfer does o / f of its work in
// them (f: its factor), so it takes o (1 - 1/f) longer than alone. Tasks of a block that is instantiated
// several times share one duration: the mean over instances. Waiting inside a collective is no company, its
// transfer is.
[[nodiscard]] Result<InterferenceResult> simulate_with_interference(const Program& program, const Plan& plan,
                                                                    const Costs& alone,
                                                                    const Interference& interference,
                                                                    const SimulateOptions& simulate = {},
                                                                    const InterferenceOptions& options = {});

}  // namespace stepcast
