#include "stepcast/analyze/step_sensitivity.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "stepcast/analyze/sensitivity.h"
#include "stepcast/predict/price_program.h"
#include "stepcast/predict/step_orbit.h"
#include "stepcast/retrace/host_prices.h"

namespace stepcast {
namespace {

std::vector<bool> crossing(const std::vector<GroupPlacement>& places) {
  std::vector<bool> crosses;
  for (const GroupPlacement& place : places) crosses.push_back(place.n_nodes > 1);
  return crosses;
}

}  // namespace

Result<Sensitivity> step_sensitivity(const PredictedStep& step) {
  const FlatProgram flat{step.program};
  const TaskTimes times = TaskTimes::simulated(flat, step.timeline);
  const std::vector<double> starts(flat.class_count(), 0.0);
  STEPCAST_ASSIGN(const Plan plan, Plan::compile(step.program));
  return sensitivity({.flat = flat,
                      .costs = step.prices.costs,
                      .times = times,
                      .rank_start_us = starts,
                      .path = {},
                      .step_us = [&](const Costs& costs) -> Result<double> {
                        STEPCAST_ASSIGN(const Timeline timeline, plan.simulate(costs));
                        return timeline.end_us();
                      },
                      .crosses_nodes = crossing(step.groups),
                      .is_host_delay = {}});
}

Result<Sensitivity> dlrm_sensitivity(const DlrmStepModel& steps) {
  const FlatProgram flat{steps.program()};
  const TaskTimes times = TaskTimes::simulated(flat, steps.timeline());
  const std::vector<double> starts(flat.class_count(), 0.0);
  STEPCAST_ASSIGN(const Plan plan, Plan::compile(steps.program()));
  return sensitivity({.flat = flat,
                      .costs = steps.costs(),
                      .times = times,
                      .rank_start_us = starts,
                      .path = {},
                      .step_us = [&](const Costs& costs) -> Result<double> {
                        STEPCAST_ASSIGN(const Timeline timeline, plan.simulate(costs));
                        return timeline.end_us();
                      },
                      .crosses_nodes = std::vector<bool>(steps.program().groups().size(),
                                                         steps.n_ranks() > steps.gpus_per_node()),
                      .is_host_delay = {},
                      .has_host_segments = true});
}

Result<Sensitivity> trace_sensitivity(const TracePrediction& prediction,
                                      const TracePredictionOptions& options, const FlatProgram& flat,
                                      const TaskTimes& times) {
  const RecordedProgram& recorded = prediction.recorded;
  CriticalPathOptions path;
  double longest = -1;
  for (std::size_t c = 0; c < prediction.ranks.size(); ++c) {
    const RecordedStepFacts& facts = recorded.facts[c];
    if (!facts.step_end_task.valid() || prediction.ranks[c].step.simulated_us <= longest) continue;
    longest = prediction.ranks[c].step.simulated_us;
    path.to_rank = RankClassId{c};
    path.to_task = flat.flat(
        {.rank_class = RankClassId{c}, .rank = 0, .instance = InstanceId{0}, .task = facts.step_end_task});
    path.to_start = facts.step_ends_at_start;
  }
  const Platform* machine = options.machine();
  const auto ranks = static_cast<std::int64_t>(std::max<std::uint64_t>(1, recorded.program.rank_count()));
  const std::int64_t in_node = machine != nullptr ? machine->node.gpus_per_node : ranks;
  StepOrbit orbit{recorded};
  STEPCAST_ASSIGN(const StepPeriod period, orbit.period(prediction.costs, prediction.timeline));
  return sensitivity({.flat = flat,
                      .costs = prediction.costs,
                      .times = times,
                      .rank_start_us = recorded.start_offset_us,
                      .path = path,
                      .step_us = [&](const Costs& costs) -> Result<double> {
                        STEPCAST_ASSIGN(const StepPeriod changed, orbit.period(costs));
                        return changed.us;
                      },
                      .crosses_nodes = crossing(place_recorded_groups(recorded.program, in_node)),
                      .is_host_delay = [&](const EdgeInfo& edge) { return is_host_delay(recorded, edge); },
                      .in_a_row = period.us > period.alone_us});
}

void add_batch(Sensitivity& sensitive, double batch, double larger_batch, double step_ms,
               double larger_step_ms) {
  if (!(larger_batch > batch) || !(step_ms > 0)) return;
  ResourceSensitivity row{.resource = "batch"};
  row.elasticity = (larger_step_ms / step_ms - 1) / (larger_batch / batch - 1);
  row.path_ms = row.elasticity * step_ms;
  constexpr double kSmaller = 1 - 1 / 1.1;
  row.saved_ms = row.path_ms * kSmaller;
  const auto place =
      std::find_if(sensitive.resources.begin(), sensitive.resources.end(),
                   [&](const ResourceSensitivity& one) { return one.saved_ms < row.saved_ms; });
  sensitive.resources.insert(place, std::move(row));
}

}  // namespace stepcast
