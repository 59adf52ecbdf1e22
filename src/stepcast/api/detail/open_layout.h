// The layout of somebody who named none.
#pragma once

#include <optional>
#include <string>

#include "stepcast/describe/job.h"
#include "stepcast/describe/layout_choice.h"
#include "stepcast/platform/platform.h"
#include "stepcast/predict/step_assumptions.h"

namespace stepcast {
class StepModels;
}

namespace stepcast::detail {

// What `plan` chooses for the same question, on as many GPUs as the usual layout; nothing where none of its layouts runs.
// `models`: of the platform, that keep what they price (PlanRequest).
[[nodiscard]] std::optional<LayoutChoice> planned_layout(const Job& asked, const ResolvedJob& usual,
                                                         const Platform& platform,
                                                         const StepAssumptions& assumptions,
                                                         StepModels* models = nullptr);

// Flags of Megatron-LM as `predict` also takes them, where these are shorter: --tp, --mbs.
[[nodiscard]] std::string in_short_flags(std::string flags);

}  // namespace stepcast::detail
