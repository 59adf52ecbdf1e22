// Scores of steps recorded in one type and predicted in another, on the same GPU.
#pragma once

#include <vector>

#include "stepcast/base/result.h"

#include "lab/collected_steps.h"
#include "lab/suite.h"

namespace stepcast {

// Scores profiler traces of bf16 steps, predicted in fp32, against the same steps measured in fp32, for programs with
// GPU-bound fp32 steps. Sets are GPUs.
[[nodiscard]] Result<TestScore> score_retyped_steps(const std::vector<CollectedGpu>& gpus);

}  // namespace stepcast
