// Suggests changes when no layout of a space runs and fits. Each change was searched and leads to at least one layout.
//
//   if (plan.found.priced.empty()) return why_none(plan, layout_fixes(request, platform));
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "stepcast/base/result.h"
#include "stepcast/plan/layout_plan.h"
#include "stepcast/platform/platform.h"

namespace stepcast {

// A change of the request that gives at least one layout.
struct LayoutFix {
  std::string change;           // "without --vp", "on 16 GPUs", "with --gbs 64"
  std::uint64_t n_layouts = 0;  // layouts that run and fit with the change
  // The fastest of these layouts.
  PricedLayout fastest;
};

// Tries to lift each restriction alone. If none helps, tries another batch, more GPUs and no restrictions at all. Empty:
// nothing helps.
[[nodiscard]] std::vector<LayoutFix> layout_fixes(const PlanRequest& request, const Platform& platform);

// Error with the reason and the fixes, for example "none of the 3,360 layouts runs on 7 GPUs".
[[nodiscard]] Error why_none(const LayoutPlan& plan, const std::vector<LayoutFix>& cures);

}  // namespace stepcast
