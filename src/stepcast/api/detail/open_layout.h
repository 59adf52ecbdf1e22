// Fills in choices that a request leaves open: the layout, and the largest batch that fits into memory.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "stepcast/api/stepcast.h"
#include "stepcast/base/quantity.h"
#include "stepcast/base/result.h"
#include "stepcast/describe/job.h"
#include "stepcast/formats/layout_choice.h"
#include "stepcast/platform/platform.h"
#include "stepcast/predict/step_assumptions.h"

namespace stepcast {
class StepModel;
}

namespace stepcast::detail {

// The layout that `plan` chooses for this job on the number of GPUs of `usual`, the default layout. Nothing
// if no layout runs. `steps`: a model of `platform` that caches prices (PlanRequest).
[[nodiscard]] std::optional<LayoutChoice> planned_layout(const Job& asked, const ResolvedJob& usual,
                                                         const Platform& platform,
                                                         const StepAssumptions& assumptions,
                                                         const StepModel* steps = nullptr);

// Replaces flags of Megatron-LM by shorter ones that `predict` also accepts: --tp, --mbs.
[[nodiscard]] std::string in_short_flags(std::string flags);

// Sets the largest micro-batch that fits into `memory` (bytes per GPU) in `job.layout`. With a global batch
// in `said`, the micro-batch must divide it. Without one, any micro-batch is allowed, and the global batch is
// one micro-batch per data-parallel rank and pipeline stage. A note says why the next larger one does not
// fit. Errors: not even one sequence fits; LargestBatch::global with a given micro-batch.
[[nodiscard]] Status take_largest_batch(LargestBatch wanted, const JobSettings& said, Bytes memory,
                                        ResolvedJob& job);

}  // namespace stepcast::detail
