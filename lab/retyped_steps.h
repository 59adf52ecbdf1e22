// Steps that were recorded in one type and asked for in another, on the GPU that recorded them.
#pragma once

#include <vector>

#include "stepcast/base/result.h"

#include "lab/collected_steps.h"
#include "lab/suite.h"

namespace stepcast {

// Profiler traces of steps in bf16 asked for in fp32, beside the same step that was measured in fp32, of programs whose fp32
// step the GPU decides. Sets are GPUs.
[[nodiscard]] Result<TestScore> score_retyped_steps(const std::vector<CollectedGpu>& gpus);

}  // namespace stepcast
