// The times of a Program on a platform: recorded and described Programs alike.
//
//   STEPCAST_ASSIGN(const PricedProgram priced, price_program(program, worker.pricer(), groups));
//   plan.simulate(priced.costs)
//   priced.coverage.unmodelled          // what kept its recorded time, and why
//
// A task takes the time of its work, `work_times` times: operations as training kernels, collectives from the
// curves of the platform, launches and the time between steps as assumed. A computation is slower beside
// transfers (Block::overlaps()). Whatever carries no work that can be priced keeps the time it was built with,
// and counts as measured; waiting takes no time.
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

// A work done once.
struct PricedWork {
  bool known = false;   // false: tasks keep the time they were built with
  Estimate once;        // if known
  std::string unknown;  // why not, if not
};

struct PricedProgram {
  Costs costs;
  std::vector<PricedWork> works;  // [WorkId]
  Coverage coverage;

  // What a task of that time rests on. The band is that of its work; a recorded time has none.
  [[nodiscard]] Estimate estimate(const TaskInfo& task, double duration_us) const;
};

// `groups`: how the groups of the Program lie on the platform's nodes, [GroupId]. Errors: a placement for another number
// of groups.
[[nodiscard]] Result<PricedProgram> price_program(const Program& program, StepPricer& prices,
                                                  std::span<const GroupPlacement> groups);

// Bodies of a Program with their prices, and when what they hold runs from a body's start on.
struct PricedBodies {
  TaskBodies tasks;
  Costs costs;
  Timeline timeline;
};
// At the prices of the Program that they are in, whose tasks in their place take as long from then on.
[[nodiscard]] Result<PricedBodies> price_bodies(TaskBodies bodies, const Program& program,
                                                const StepPricer& prices, PricedProgram& priced);

// What so many runs of the blocks rest on, over all ranks, [BlockId].
[[nodiscard]] Coverage coverage_of(const Program& program, const PricedProgram& priced,
                                   std::span<const double> runs, const PricedBodies* bodies = nullptr);

// [GroupId] of a Program whose groups name their ranks, as recorded ones do; rank r is GPU r mod gpus_per_node
// of node r / gpus_per_node. Groups of the same label communicate at the same time.
[[nodiscard]] std::vector<GroupPlacement> place_recorded_groups(const Program& program,
                                                                std::int64_t gpus_per_node);

}  // namespace stepcast
