// What to change where no layout of a space runs and fits: each change was searched, and some layout runs with it.
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

struct LayoutFix {
  std::string change;           // "without --vp", "on 16 GPUs", "with --gbs 64"
  std::uint64_t n_layouts = 0;  // that run and fit
  PricedLayout fastest;
};

// One restriction left out, each by itself; where none of that helps, another batch, more GPUs, and all restrictions left
// out. Empty: nothing that was tried helps.
[[nodiscard]] std::vector<LayoutFix> layout_fixes(const PlanRequest& request, const Platform& platform);

// "none of the 3,360 layouts runs on 7 GPUs", why, and what helps.
[[nodiscard]] Error why_none(const LayoutPlan& plan, const std::vector<LayoutFix>& cures);

}  // namespace stepcast
