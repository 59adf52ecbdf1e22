// The layout of somebody who named none.
#pragma once

#include <optional>
#include <string>

#include "stepcast/describe/job.h"
#include "stepcast/describe/layout_choice.h"
#include "stepcast/platform/platform.h"
#include "stepcast/predict/step_assumptions.h"

namespace stepcast::detail {

// What `plan` chooses for the same question, on as many GPUs as the usual layout; nothing where none of its layouts runs.
[[nodiscard]] std::optional<LayoutChoice> planned_layout(const Job& asked, const ResolvedJob& usual,
                                                         const Platform& platform,
                                                         const StepAssumptions& assumptions);

// Flags of Megatron-LM as `predict` also takes them, where these are shorter: --tp, --mbs.
[[nodiscard]] std::string in_short_flags(std::string flags);

}  // namespace stepcast::detail
