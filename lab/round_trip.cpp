#include "lab/round_trip.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <utility>

#include "stepcast/simulate/engine.h"
#include "stepcast/trace/readers.h"

#include "lab/kineto_writer.h"
#include "lab/simulated_trace.h"

namespace stepcast {
namespace {

// Work launched before the step depends on the start of the rank, not on a launch.
std::vector<bool> left_over(const Block& block) {
  std::vector<bool> result(block.task_count(), false);
  for (std::uint32_t t = 0; t < block.task_count(); ++t) {
    if (!is_gpu_work(block.tasks()[t].kind)) continue;
    for (std::uint32_t e = block.first_edge()[t]; e < block.first_edge()[t + 1]; ++e)
      if (block.edge_infos()[e].origin == EdgeOrigin::recorded_offset) result[t] = true;
  }
  return result;
}

void scale_kernels(const Program& program, double factor, Costs& costs) {
  if (factor == 1) return;
  for (std::size_t b = 0; b < program.blocks().size(); ++b) {
    const BlockId id{b};
    const Block& block = program.block(id);
    const std::vector<bool> given = left_over(block);
    const auto durations = costs.duration_us(id);
    for (std::uint32_t t = 0; t < block.task_count(); ++t) {
      const TaskKind kind = block.tasks()[t].kind;
      if (is_gpu_work(kind) && kind != TaskKind::collective && !given[t]) durations[t] *= factor;
    }
  }
  costs.rescale_shared_delays(program);
}

Result<Timeline> run(const RecordedProgram& recorded, double kernel_factor,
                     const std::vector<double>& shift_us) {
  STEPCAST_ASSIGN(const Plan plan, Plan::compile(recorded.program));
  Costs costs{recorded.program};
  scale_kernels(recorded.program, kernel_factor, costs);
  SimulateOptions options;
  for (std::size_t r = 0; r < recorded.start_offset_us.size(); ++r)
    options.start_offset_us.push_back(recorded.start_offset_us[r] + (r < shift_us.size() ? shift_us[r] : 0));
  return plan.simulate(costs, options);
}

std::vector<Interval> task_times(const Timeline& timeline, std::size_t rank) {
  const auto times = timeline.instance(RankClassId{rank}, 0, InstanceId{0});
  return {times.begin(), times.end()};
}

double step_end_us(const RecordedProgram& recorded, std::size_t rank, const std::vector<Interval>& times) {
  const RecordedStepFacts& facts = recorded.facts[rank];
  if (!facts.step_end_task.valid()) return recorded.start_offset_us[rank];
  const Interval& last = times[facts.step_end_task.index()];
  return facts.step_ends_at_start ? last.start_us : last.end_us;
}

const Block& block_of(const RecordedProgram& recorded, std::size_t rank) {
  return recorded.program.block_of(RankClassId{rank}, InstanceId{0});
}

// Adds the differences of the starts of GPU work between `second`, rebuilt from the written trace, and `first`.
void compare_kernel_starts(const Block& first, const std::vector<Interval>& before, const Block& second,
                           const std::vector<Interval>& after, const SimulatedTrace& written, double ahead_us,
                           RoundTripResult& result) {
  std::unordered_map<std::uint32_t, double> start_of;  // [GPU op of the written trace]
  for (std::uint32_t t = 0; t < second.task_count(); ++t)
    if (is_gpu_work(second.tasks()[t].kind))
      start_of[second.tasks()[t].recorded_event] = after[t].start_us + ahead_us;
  for (std::uint32_t t = 0; t < first.task_count(); ++t) {
    if (!is_gpu_work(first.tasks()[t].kind)) continue;
    const auto it = start_of.find(written.gpu_op[first.tasks()[t].recorded_event]);
    if (it == start_of.end())
      ++result.lost;
    else
      result.kernel_start_error_us.push_back(std::abs(it->second - before[t].start_us));
  }
}

}  // namespace

double RoundTripResult::largest_end_error_percent() const {
  double largest = 0;
  for (const RankEnd& e : ends) largest = std::max(largest, std::abs(e.error_percent()));
  return largest;
}

double RoundTripResult::kernel_start_error_quantile_us(double share) const {
  if (kernel_start_error_us.empty()) return 0;
  const auto last = static_cast<double>(kernel_start_error_us.size() - 1);
  return kernel_start_error_us[static_cast<std::size_t>(std::ceil(share * last))];
}

std::vector<RoundTripScenario> standard_round_trips(std::size_t ranks) {
  std::vector<RoundTripScenario> scenarios;
  const auto add = [&](std::string name, double factor, std::vector<double> shift) {
    RoundTripScenario s{.name = std::move(name), .kernel_factor = factor, .start_shift_us = std::move(shift)};
    scenarios.push_back(std::move(s));
  };
  add("unchanged", 1, {});
  if (ranks > 1) {
    std::vector<double> second(ranks, 0), ends(ranks, 0), rising(ranks, 0);
    second[1] = 9000;
    ends.front() = 5000;
    ends.back() = -2000;
    for (std::size_t r = 0; r < ranks; ++r) rising[r] = 700.0 * static_cast<double>((3 * r) % ranks);
    add("second rank starts 9 ms later", 1, second);
    add("first rank starts 5 ms later, last 2 ms earlier", 1, ends);
    add("every rank starts at another time", 1, rising);
  }
  add("kernels x3", 3, {});
  add("kernels x10", 10, {});
  add("kernels x30", 30, {});
  scenarios.back().through_file = true;
  return scenarios;
}

Result<RoundTripResult> round_trip(std::span<const RecordedInput> input, const RoundTripScenario& scenario) {
  // As in rebuild_program: ranks ascending for any order of files.
  std::vector<RecordedInput> ranks(input.begin(), input.end());
  std::ranges::stable_sort(ranks, [](const RecordedInput& a, const RecordedInput& b) {
    return a.kineto->rank.value_or(0) < b.kineto->rank.value_or(0);
  });
  STEPCAST_ASSIGN(const RecordedProgram there, rebuild_program(ranks, scenario.rebuild));
  STEPCAST_ASSIGN(const Timeline original, run(there, 1, {}));
  STEPCAST_ASSIGN(const Timeline changed, run(there, scenario.kernel_factor, scenario.start_shift_us));

  std::vector<SimulatedTrace> traces;
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    const double shift = r < scenario.start_shift_us.size() ? scenario.start_shift_us[r] : 0;
    const std::vector<Interval> times = task_times(changed, r);
    traces.push_back(simulated_trace(*ranks[r].kineto, block_of(there, r), there.measured[r], times,
                                     there.facts[r].step_us, there.start_offset_us[r] + shift,
                                     step_end_us(there, r, times)));
    if (scenario.through_file) {
      STEPCAST_ASSIGN(traces.back().recorded,
                      parse_kineto(to_kineto_json(traces.back().recorded), ranks[r].kineto->file));
    }
  }
  std::vector<RecordedInput> written;
  for (std::size_t r = 0; r < ranks.size(); ++r)
    written.push_back({&traces[r].recorded, ranks[r].execution_trace});
  RebuildOptions options = scenario.rebuild;
  if (there.facts.front().step_number >= 0) options.step = there.facts.front().step_number;
  STEPCAST_ASSIGN(const RecordedProgram back, rebuild_program(written, options));
  std::vector<double> undo = scenario.start_shift_us;
  for (double& shift : undo) shift = -shift;
  STEPCAST_ASSIGN(const Timeline returned, run(back, 1 / scenario.kernel_factor, undo));

  // Both clocks start at the earliest step of their set.
  const auto since = [](Nanoseconds a, Nanoseconds b) { return static_cast<double>((a - b).count()) * 1e-3; };
  const double ahead_us = since(clock_origin(traces[0].recorded, block_of(back, 0), back.measured[0]),
                                clock_origin(*ranks[0].kineto, block_of(there, 0), there.measured[0]));

  RoundTripResult result{.scenario = scenario.name};
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    const std::vector<Interval> before = task_times(original, r), after = task_times(returned, r);
    RoundTripResult::RankEnd end;
    end.rank = there.facts[r].rank;
    end.original_us = step_end_us(there, r, before);
    end.step_us = end.original_us - there.start_offset_us[r];
    end.returned_us = step_end_us(back, r, after) + ahead_us;
    end.changed_us = step_end_us(there, r, task_times(changed, r));
    result.ends.push_back(end);

    compare_kernel_starts(block_of(there, r), before, block_of(back, r), after, traces[r], ahead_us, result);
  }
  std::ranges::sort(result.kernel_start_error_us);
  return result;
}

}  // namespace stepcast
