// What `stepcast predict` prints about a described step: time with interval, where it goes, throughput,
// memory, cost.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "stepcast/platform/platform.h"
#include "stepcast/predict/step_explanation.h"
#include "stepcast/predict/step_model.h"
#include "stepcast/workload/layout.h"
#include "stepcast/workload/memory.h"
#include "stepcast/workload/transformer.h"

namespace stepcast {

struct StepReport {
  const Transformer* model = nullptr;
  const Layout* layout = nullptr;
  const Platform* platform = nullptr;
  const StepPrediction* prediction = nullptr;
  const MemoryForecast* memory = nullptr;
  TrainingBudget budget;
  std::vector<std::string> notes;  // what was assumed, what is not modelled
};

[[nodiscard]] std::string step_text(const StepReport& report);
[[nodiscard]] std::string step_json(const StepReport& report);

// The lists of a step as a table: times, FLOPs, bytes, and the ground each time stands on.
[[nodiscard]] std::string explain_text(std::span<const ExplainedList> lists);

}  // namespace stepcast
