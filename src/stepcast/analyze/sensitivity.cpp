#include "stepcast/analyze/sensitivity.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "stepcast/operation/kernel_class.h"
#include "stepcast/predict/price_program.h"
#include "stepcast/predict/step_orbit.h"
#include "stepcast/retrace/host_prices.h"

namespace stepcast {
namespace {

// The small change that shows whether another path becomes critical at once, and the speed-up of 10 %.
constexpr double kSmallStep = 1e-3, kFaster = 1.1;
// Relative to the step: smaller differences between the simulated gain and the path's are rounding errors.
constexpr double kRounding = 1e-6;

constexpr std::string_view kNone{}, kCopies = "copies", kInsideNodes = "nvlink", kBetweenNodes = "network",
                                    kHost = "host";

// Assigns tasks and delays to resources by name. Names are those of ResourceSensitivity::resource.
class Resources {
 public:
  explicit Resources(const SensitivityInput& input) : in_(input), program_(input.flat.program()) {}

  // The resource of a task; empty if no resource shortens it, such as waiting.
  std::string_view of(const TaskInfo& task) const {
    if (const CollectiveWork* transfer = program_.works.collective(task.work);
        transfer != nullptr || task.kind == TaskKind::collective ||
        task.kernel_class == KernelClass::communication) {
      const bool across = transfer != nullptr && transfer->group.valid() &&
                          transfer->group.index() < in_.crosses_nodes.size() &&
                          in_.crosses_nodes[transfer->group.index()];
      return across ? kBetweenNodes : kInsideNodes;
    }
    switch (task.kind) {
      case TaskKind::kernel: return to_string(task.kernel_class);
      case TaskKind::memcpy:
      case TaskKind::memset: return kCopies;
      case TaskKind::cpu_segment:
        if (in_.has_host_segments) return kHost;
        [[fallthrough]];
      default: return program_.works.host(task.work) != nullptr ? kHost : kNone;
    }
  }
  // The resource of a delay: the host, if a faster host shortens it.
  std::string_view of(const EdgeInfo& edge) const {
    return in_.is_host_delay && in_.is_host_delay(edge) ? kHost : kNone;
  }

  // The resource of a delay on the path. A delay that is a share of its source task's time has the resource
  // of that task.
  std::string_view of_delay(const PathStep& step) const {
    if (step.edge.share_of_source <= 0) return of(step.edge);
    std::string_view found = kNone;
    in_.flat.for_each_source(step.rank_class, step.task, in_.costs, [&](const FlatSource& source) {
      if (source.task != kNoTask && source.info.share_of_source == step.edge.share_of_source)
        found = of(in_.flat.info(step.rank_class, source.task));
    });
    return found;
  }

 private:
  const SensitivityInput& in_;
  const Program& program_;
};

// The time on the critical path in microseconds, by resource.
std::map<std::string, double> on_the_path(const SensitivityInput& input) {
  const Resources resources{input};
  const CriticalPath path =
      critical_path(input.flat, input.times, input.costs, input.rank_start_us, input.path);
  std::map<std::string, double> path_us;
  for (const PathStep& step : path.steps) {
    std::string_view resource = kNone;
    if (step.kind == PathStep::Kind::task)
      resource = resources.of(input.flat.info(step.rank_class, step.task));
    if (step.kind == PathStep::Kind::edge) resource = resources.of_delay(step);
    if (!resource.empty()) path_us[std::string{resource}] += step.time.length_us();
  }
  return path_us;
}

// The share of each resource as a difference quotient: the gain from 0.1 % faster times, divided by 0.001.
Result<std::map<std::string, double>> by_differences(const SensitivityInput& input, double step_us) {
  const Resources resources{input};
  const Program& program = input.flat.program();
  std::map<std::string, double> us;
  for (const Block& block : program.blocks())
    for (const TaskInfo& task : block.tasks())
      if (const std::string_view resource = resources.of(task); !resource.empty())
        us[std::string{resource}] = 0;
  for (auto& [resource, share_us] : us) {
    STEPCAST_ASSIGN(const double faster, input.step_us(with_resource(input, resource, 1 - kSmallStep)));
    share_us = (step_us - faster) / kSmallStep;
  }
  return us;
}

// Adds the row of a resource, if `us` microseconds of it are on the path. `saved_us(factor)`: the gain if its
// times are multiplied by `factor`. The gain falls short of the path's share if another path becomes
// critical.
Status add_resource(const std::string& resource, double us, double step_us,
                    const std::function<Result<double>(double factor)>& saved_us, Sensitivity& out) {
  if (us <= 0 || step_us <= 0) return Ok{};
  ResourceSensitivity one{.resource = resource, .path_ms = us * 1e-3, .elasticity = us / step_us};
  const auto falls_short = [&](double saved, double factor) {
    return std::abs(saved - us * (1 - factor)) > kRounding * step_us * (1 - factor);
  };
  STEPCAST_ASSIGN(const double at_once, saved_us(1 - kSmallStep));
  one.switches_at_once = falls_short(at_once, 1 - kSmallStep);
  STEPCAST_ASSIGN(const double faster, saved_us(1 / kFaster));
  one.switches = falls_short(faster, 1 / kFaster);
  one.saved_ms = faster * 1e-3;
  out.resources.push_back(std::move(one));
  return Ok{};
}

// Largest gain first.
void sort_by_gain(Sensitivity& out) {
  std::stable_sort(out.resources.begin(), out.resources.end(),
                   [](const auto& a, const auto& b) { return a.saved_ms > b.saved_ms; });
}

}  // namespace

Costs with_resource(const SensitivityInput& input, const std::string& resource, double factor) {
  const Resources resources{input};
  const Program& program = input.flat.program();
  // Every task and every delay of the resource is scaled. Delays that are shares of tasks follow from the
  // tasks.
  Costs costs = input.costs;
  for (std::size_t b = 0; b < program.blocks().size(); ++b) {
    const Block& block = program.block(BlockId{b});
    const std::span<double> us = costs.duration_us(BlockId{b}), delays = costs.delay_us(BlockId{b});
    for (std::size_t t = 0; t < us.size(); ++t)
      if (resources.of(block.tasks()[t]) == resource) us[t] *= factor;
    for (std::size_t e = 0; e < delays.size(); ++e)
      if (resources.of(block.edge_infos()[e]) == resource) delays[e] *= factor;
  }
  costs.rescale_shared_delays(program);
  return costs;
}

Result<Sensitivity> sensitivity(const SensitivityInput& input) {
  STEPCAST_ASSIGN(const double step_us, input.step_us(input.costs));
  Sensitivity out;
  std::map<std::string, double> path_us;
  if (input.in_a_row) {
    STEPCAST_ASSIGN(path_us, by_differences(input, step_us));
  } else {
    path_us = on_the_path(input);
  }
  out.step_time_ms = step_us * 1e-3;
  for (const auto& [resource, us] : path_us) {
    const auto saved_us = [&](double factor) -> Result<double> {
      STEPCAST_ASSIGN(const double changed, input.step_us(with_resource(input, resource, factor)));
      return step_us - changed;
    };
    STEPCAST_TRY(add_resource(resource, us, step_us, saved_us, out));
  }
  sort_by_gain(out);
  return out;
}

namespace {

// [GroupId] whether the group has ranks on several nodes.
std::vector<bool> crossing(const std::vector<GroupPlacement>& places) {
  std::vector<bool> crosses;
  for (const GroupPlacement& place : places) crosses.push_back(place.n_nodes > 1);
  return crosses;
}

}  // namespace

Result<Sensitivity> step_sensitivity(const PredictedStep& step) {
  return program_sensitivity(step.program, step.prices.costs, step.timeline, crossing(step.groups));
}

Result<Sensitivity> program_sensitivity(const Program& program, const Costs& costs, const Timeline& timeline,
                                        std::vector<bool> crosses_nodes, bool has_host_segments) {
  const FlatProgram flat{program};
  const TaskTimes times = TaskTimes::simulated(flat, timeline);
  const std::vector<double> starts(flat.class_count(), 0.0);
  STEPCAST_ASSIGN(const Plan plan, Plan::compile(program));
  return sensitivity({.flat = flat,
                      .costs = costs,
                      .times = times,
                      .rank_start_us = starts,
                      .path = {},
                      .step_us = [&](const Costs& changed) -> Result<double> {
                        STEPCAST_ASSIGN(const Timeline simulated, plan.simulate(changed));
                        return simulated.end_us();
                      },
                      .crosses_nodes = std::move(crosses_nodes),
                      .is_host_delay = {},
                      .has_host_segments = has_host_segments});
}

Result<Sensitivity> what_if_sensitivity(
    std::span<const std::string_view> parts,
    const std::function<Result<double>(std::string_view part, double speed)>& step_ms) {
  STEPCAST_ASSIGN(const double now_ms, step_ms({}, 1));
  Sensitivity out{.step_time_ms = now_ms, .resources = {}};
  for (const std::string_view part : parts) {
    const auto saved_us = [&](double factor) -> Result<double> {
      STEPCAST_ASSIGN(const double faster_ms, step_ms(part, 1 / factor));
      return (now_ms - faster_ms) * 1e3;
    };
    STEPCAST_ASSIGN(const double little, saved_us(1 - kSmallStep));
    STEPCAST_TRY(add_resource(std::string{part}, little / kSmallStep, now_ms * 1e3, saved_us, out));
  }
  sort_by_gain(out);
  return out;
}

Result<Sensitivity> trace_sensitivity(const TracePrediction& prediction,
                                      const TracePredictionOptions& options, const FlatProgram& flat,
                                      const TaskTimes& times) {
  const RecordedProgram& recorded = prediction.recorded;
  CriticalPathOptions path;
  double longest = -1;
  for (std::size_t c = 0; c < prediction.ranks.size(); ++c) {
    // The path must lead to the end of the longest step.
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
  // The step time here is the period of a steady series of steps (step_orbit.h).
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
  // The elasticity is the relative change of the step over that of the batch. The gain is extrapolated
  // linearly to a batch that is smaller by a factor of 1.1.
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
