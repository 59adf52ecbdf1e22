// Straggler scenarios of a step: how they are distributed, and which rank's host or GPU, or the network, makes the
// slow ones slow.
#pragma once

#include "stepcast/analyze/forecast.h"
#include "stepcast/base/result.h"
#include "stepcast/predict/scenario_sweep.h"
#include "stepcast/trace/recorded_program.h"

namespace stepcast {

// Slow is the slowest tenth. The cause of a slow scenario is what its draw adds most of to the critical path to the
// end of its longest step: of the time that the path spends on the host or the GPU of a rank, or on the network, the
// part that factors above their mean account for. Errors: those of Plan::simulate.
[[nodiscard]] Result<ForecastScenarios> sweep_with_causes(const RecordedProgram& recorded, const Costs& costs,
                                                          const SlowdownDraws& draws,
                                                          const SweepOptions& options);

}  // namespace stepcast
