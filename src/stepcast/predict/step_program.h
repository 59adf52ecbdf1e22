// A described step as a Program: every operation and transfer of every micro-batch a task that carries its
// work, one rank class per pipeline stage.
//
//   STEPCAST_ASSIGN(const PricedStep step, steps.price(model, layout));
//   STEPCAST_ASSIGN(const Program program, step_program(step, layout, steps.worker(step).pricer()));
//   Costs costs{program};         // the prices
//
// The engine simulates it like a recorded one, and its end is the step that ScheduleEvaluator finds by
// recurrences (tests hold both to 1e-9). Lanes of a rank: computation, transfers inside a layer, weights and
// gradients, activations sent and received in both directions, and the host. The host launches the kernels of
// a layer while the layer runs; a layer ends when both are done. A group is labelled as to_string(GroupKind)
// says; it has no ranks, group_placements() tells how it lies on nodes.
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

// A step as one pool of GPUs has it: the stages up to `end_stage`, from those of the pool before.
struct StagesOfStep {
  const PricedStep* step = nullptr;
  StepPricer* pricer = nullptr;
  std::uint32_t end_stage = 0;
};

// Ranks of a class do the same at the same time, so transfers among them are tasks of their own lane; what
// stages wait for each other are collectives. `layout` as it was priced; `micro_batches`: other than those of its step.
[[nodiscard]] Result<Program> step_program(const PricedStep& step, const Layout& layout, StepPricer& pricer,
                                           std::optional<std::uint32_t> micro_batches = {});
// The same where the stages are on several pools: works and times of each as its pool has them.
[[nodiscard]] Result<Program> step_program(std::span<const StagesOfStep> parts, const Layout& layout,
                                           std::optional<std::uint32_t> micro_batches = {},
                                           TaskBodies* bodies = nullptr);

// [GroupId] of a Program that step_program() made.
[[nodiscard]] std::vector<GroupPlacement> group_placements(const Program& program,
                                                           const Placement& placement);

}  // namespace stepcast
