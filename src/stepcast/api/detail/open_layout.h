// What a request leaves open: the layout of somebody who named none, the largest batch that fits.
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

// What `plan` chooses for the same question, on as many GPUs as the usual layout; nothing where none of its layouts runs.
// `steps`: of the platform, that keeps what is priced (PlanRequest).
[[nodiscard]] std::optional<LayoutChoice> planned_layout(const Job& asked, const ResolvedJob& usual,
                                                         const Platform& platform,
                                                         const StepAssumptions& assumptions,
                                                         const StepModel* steps = nullptr);

// Flags of Megatron-LM as `predict` also takes them, where these are shorter: --tp, --mbs.
[[nodiscard]] std::string in_short_flags(std::string flags);

// `job.layout` takes the largest micro-batch that fits: of those that divide the batch of `said`; where that states none, of
// all, and the batch is one micro-batch for every data-parallel rank, or one for every stage of its pipeline. A note says
// what the next takes. Errors: not even one sequence fits; a batch wanted as large as can be, with a micro-batch said.
[[nodiscard]] Status take_largest_batch(LargestBatch wanted, const JobSettings& said, Bytes memory,
                                        ResolvedJob& job);

}  // namespace stepcast::detail
