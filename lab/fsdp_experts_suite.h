// Scores published steps of models with experts under FSDP 2 and expert parallelism (fsdp_expert_steps.csv: NeMo Automodel) as a
// job of `--framework automodel`.
//
//   fsdp_experts           (primary) milliseconds of a step
//   fsdp_experts_constant  the trivial answer: every GPU computes at the median rate of the other rows
//
// "shipped": nothing is fitted. Recomputation is not printed: of none and of full the one that comes closer is what ran.
// Where expert parallelism is not printed it is all GPUs.
#pragma once

#include "lab/suite.h"

namespace stepcast {

[[nodiscard]] Suite fsdp_experts_suite();

}  // namespace stepcast
