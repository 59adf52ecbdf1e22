// Builds the Program of a described step: one task with its work for every operation and transfer of every
// micro-batch, and one rank class per pipeline stage.
//
//   STEPCAST_ASSIGN(const PricedStep step, steps.price(model, layout));
//   STEPCAST_ASSIGN(const Program program, step_program(step, layout, steps.worker(step).pricer()));
//   Costs costs{program};         // contains the prices
//
// The engine simulates it like a recorded Program. Its end equals the step time of ScheduleEvaluator (tests
// check this to 1e-9). The lanes of a rank are computation, transfers inside a layer, weights and gradients,
// activations sent and received in both directions, and the host. The host launches the kernels of a layer
// while the layer runs; a layer ends when both are done. Groups have the label to_string(GroupKind) and no
// ranks; group_placements() returns how they are placed on nodes.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "stepcast/base/result.h"
#include "stepcast/platform/group_placement.h"
#include "stepcast/predict/step_model.h"
#include "stepcast/program/program.h"
#include "stepcast/program/task_bodies.h"

namespace stepcast {

// The part of a step on one pool of GPUs: the stages from the end of the previous pool up to `end_stage`
// (exclusive).
struct StagesOfStep {
  const PricedStep* step = nullptr;
  StepPricer* pricer = nullptr;
  std::uint32_t end_stage = 0;
};

// Ranks of a class do the same at the same time, so a transfer among them is a task on one lane. Dependencies
// between stages are collectives. `layout` must be the one that was priced. `micro_batches`: replaces the
// number in `step`.
[[nodiscard]] Result<Program> step_program(const PricedStep& step, const Layout& layout, StepPricer& pricer,
                                           std::optional<std::uint32_t> micro_batches = {});
// The same for stages on several pools: works and times of a stage come from its pool. `bodies`: if not null,
// passes that nothing else interacts with become single tasks, with their contents in `bodies`.
[[nodiscard]] Result<Program> step_program(std::span<const StagesOfStep> parts, const Layout& layout,
                                           std::optional<std::uint32_t> micro_batches = {},
                                           TaskBodies* bodies = nullptr);

// [GroupId] placements of the groups of a Program from step_program().
[[nodiscard]] std::vector<GroupPlacement> group_placements(const Program& program,
                                                           const Placement& placement);

}  // namespace stepcast
