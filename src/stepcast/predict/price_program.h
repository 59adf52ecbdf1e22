// Prices a Program on a platform. Recorded and described Programs are treated equally.
//
//   STEPCAST_ASSIGN(const PricedProgram priced, price_program(program, worker.pricer(), groups));
//   plan.simulate(priced.costs)
//   priced.coverage.unmodelled          // tasks that kept their recorded time, and why
//
// A task takes `work_times` times the time of its work: operations as training kernels, collectives from the
// curves of the platform, launches and the time between steps as assumed. A computation is slowed down by
// transfers that overlap it (Block::overlaps()). Tasks without a work that can be priced keep the time they
// were built with, and are treated as measured. Waiting takes no time.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "stepcast/base/result.h"
#include "stepcast/operation/estimate.h"
#include "stepcast/platform/group_placement.h"
#include "stepcast/predict/coverage.h"
#include "stepcast/predict/step_prices.h"
#include "stepcast/program/program.h"
#include "stepcast/program/task_bodies.h"
#include "stepcast/simulate/engine.h"

namespace stepcast {

// The price of one repetition of a work.
struct PricedWork {
  bool known = false;   // false: tasks keep the time they were built with
  Estimate once;        // if known
  std::string unknown;  // reason, if not known
};

// Durations of all tasks on a platform, and where they come from.
struct PricedProgram {
  Costs costs;
  std::vector<PricedWork> works;  // [WorkId]
  Coverage coverage;

  // Estimate of a task with this duration. The band is that of its work; a recorded time has no band.
  [[nodiscard]] Estimate estimate(const TaskInfo& task, double duration_us) const;
};

// `groups`: [GroupId] placement of the groups of the Program on the platform's nodes. Errors: the number of
// placements differs from the number of groups.
[[nodiscard]] Result<PricedProgram> price_program(const Program& program, StepPricer& prices,
                                                  std::span<const GroupPlacement> groups);

// Bodies of a Program with their prices and the times of their inner tasks since the start of a body.
struct PricedBodies {
  TaskBodies tasks;
  Costs costs;
  Timeline timeline;
};
// Simulates the bodies at the prices of `priced`, which belong to `program`. Sets the durations of the tasks
// that represent the bodies, and the coverage.
[[nodiscard]] Result<PricedBodies> price_bodies(TaskBodies bodies, const Program& program,
                                                const StepPricer& prices, PricedProgram& priced);

// Coverage if block b runs runs[b] times over all ranks.
[[nodiscard]] Coverage coverage_of(const Program& program, const PricedProgram& priced,
                                   std::span<const double> runs, const PricedBodies* bodies = nullptr);

// [GroupId] placements for a Program with groups that list their ranks, such as a recorded one. Rank r is GPU
// r mod gpus_per_node of node r / gpus_per_node. Groups with equal labels communicate at the same time.
[[nodiscard]] std::vector<GroupPlacement> place_recorded_groups(const Program& program,
                                                                std::int64_t gpus_per_node);

}  // namespace stepcast
