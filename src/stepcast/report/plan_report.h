// A searched space of layouts for people (text), programs (JSON) and spreadsheets (CSV of all that were priced).
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "stepcast/plan/layout_plan.h"
#include "stepcast/plan/nearby_layouts.h"
#include "stepcast/plan/training_plan.h"

namespace stepcast {

struct PlanSubject {
  std::string platform;  // as it was asked for
  std::string gpu;       // name of the device
  std::size_t top = 20;  // rows of the table
  std::optional<LayoutNow> now = std::nullopt;
};

[[nodiscard]] std::string plan_text(const LayoutPlan& plan, const PlanSubject& subject);
// Schema stepcast.plan/1 (docs/plan.md).
[[nodiscard]] std::string plan_json(const LayoutPlan& plan, const PlanSubject& subject);
// All priced layouts: as CSV, and as JSON objects, one a line.
[[nodiscard]] std::string plan_csv(const LayoutPlan& plan);
[[nodiscard]] std::string plan_jsonl(const LayoutPlan& plan);
// GPUs and machines for a training.
[[nodiscard]] std::string training_text(const TrainingPlan& plan, const TrainingGoal& goal);
[[nodiscard]] std::string training_json(const TrainingPlan& plan, const TrainingGoal& goal);

}  // namespace stepcast
