// A searched space of layouts for people (text), programs (JSON) and spreadsheets (CSV of all that were priced).
#pragma once

#include <cstddef>
#include <string>

#include "stepcast/plan/layout_plan.h"

namespace stepcast {

struct PlanSubject {
  std::string platform;  // as it was asked for
  std::string gpu;       // name of the device
  std::size_t top = 20;  // rows of the table
};

[[nodiscard]] std::string plan_text(const LayoutPlan& plan, const PlanSubject& subject);
// Schema stepcast.plan/1 (docs/plan.md).
[[nodiscard]] std::string plan_json(const LayoutPlan& plan, const PlanSubject& subject);
[[nodiscard]] std::string plan_csv(const LayoutPlan& plan);

}  // namespace stepcast
