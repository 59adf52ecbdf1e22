#include "stepcast/predict/interference_sweep.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "stepcast/base/interval.h"

namespace stepcast {
namespace {

// When something is transferred on the GPU of one rank class: merged, ascending.
std::vector<Interval> transfers_of(const Program& program, RankClassId c, const Costs& costs,
                                   const Timeline& timeline) {
  std::vector<Interval> all;
  const RankClass& rank_class = program.rank_class(c);
  for (std::size_t i = 0; i < rank_class.instances.size(); ++i) {
    const BlockId block = rank_class.instances[i].block;
    const auto tasks = program.block(block).tasks();
    const auto durations = costs.duration_us(block);
    for (std::uint32_t repetition = 0; repetition < rank_class.instances[i].repeat; ++repetition) {
      const auto times = timeline.instance(c, 0, InstanceId{i}, repetition);
      for (std::size_t t = 0; t < tasks.size(); ++t) {
        const bool collective = tasks[t].kind == TaskKind::collective;
        if (!collective && tasks[t].kernel_class != KernelClass::communication) continue;
        const double begin = collective ? times[t].end_us - durations[t] : times[t].start_us;
        if (times[t].end_us > begin) all.push_back({begin, times[t].end_us});
      }
    }
  }
  std::sort(all.begin(), all.end(),
            [](const Interval& a, const Interval& b) { return a.start_us < b.start_us; });
  std::vector<Interval> merged;
  for (const Interval& x : all) {
    if (merged.empty() || x.start_us > merged.back().end_us)
      merged.push_back(x);
    else
      merged.back().end_us = std::max(merged.back().end_us, x.end_us);
  }
  return merged;
}

double overlap_us(const std::vector<Interval>& merged, const Interval& x) {
  auto it = std::partition_point(merged.begin(), merged.end(),
                                 [&](const Interval& m) { return m.end_us <= x.start_us; });
  double sum = 0;
  for (; it != merged.end() && it->start_us < x.end_us; ++it)
    sum += std::min(it->end_us, x.end_us) - std::max(it->start_us, x.start_us);
  return sum;
}

// Durations that the overlaps of `timeline` ask for.
Costs stretched(const Program& program, const Costs& alone, const Costs& now, const Timeline& timeline,
                const Interference& interference) {
  std::vector<std::vector<double>> sum(program.blocks().size());
  std::vector<double> runs(program.blocks().size(), 0);
  for (std::size_t b = 0; b < sum.size(); ++b) sum[b].assign(program.blocks()[b].task_count(), 0);
  for (std::size_t k = 0; k < program.rank_classes().size(); ++k) {
    const RankClassId c{k};
    const RankClass& rank_class = program.rank_class(c);
    const std::vector<Interval> transfers = transfers_of(program, c, now, timeline);
    for (std::size_t i = 0; i < rank_class.instances.size(); ++i) {
      const BlockId block = rank_class.instances[i].block;
      const auto tasks = program.block(block).tasks();
      const auto own = alone.duration_us(block);
      for (std::uint32_t repetition = 0; repetition < rank_class.instances[i].repeat; ++repetition) {
        const auto times = timeline.instance(c, 0, InstanceId{i}, repetition);
        runs[block.index()] += 1;
        for (std::size_t t = 0; t < tasks.size(); ++t) {
          double duration = own[t];
          if (tasks[t].kind == TaskKind::kernel && tasks[t].kernel_class != KernelClass::communication) {
            const double beside = overlap_us(transfers, times[t]);
            const double factor = beside > 0 ? interference
                                                   .beside_communication(tasks[t].kernel_class,
                                                                         program.names.text(tasks[t].name))
                                                   .median
                                             : 1;
            const bool all_of_it = beside >= times[t].length_us() * (1 - 1e-9);
            if (factor > 1) duration = all_of_it ? own[t] * factor : own[t] + beside * (1 - 1 / factor);
            duration = std::min(duration, own[t] * std::max(factor, 1.0));
          }
          sum[block.index()][t] += duration;
        }
      }
    }
  }
  Costs next = alone;
  for (std::size_t b = 0; b < sum.size(); ++b) {
    const auto durations = next.duration_us(BlockId{b});
    for (std::size_t t = 0; t < durations.size() && runs[b] > 0; ++t) durations[t] = sum[b][t] / runs[b];
  }
  next.rescale_shared_delays(program);
  return next;
}

}  // namespace

Result<InterferenceResult> simulate_with_interference(const Program& program, const Plan& plan,
                                                      const Costs& alone, const Interference& interference,
                                                      const SimulateOptions& simulate,
                                                      const InterferenceOptions& options) {
  STEPCAST_ASSIGN(Timeline first, plan.simulate(alone, simulate));
  InterferenceResult result{std::move(first), alone, 1, 0, 0};
  while (true) {
    Costs next = stretched(program, alone, result.costs, result.timeline, interference);
    result.residual_us = 0;
    for (std::size_t b = 0; b < program.blocks().size(); ++b) {
      const auto now = result.costs.duration_us(BlockId{b});
      const auto then = std::as_const(next).duration_us(BlockId{b});
      for (std::size_t t = 0; t < now.size(); ++t)
        result.residual_us = std::max(result.residual_us, std::abs(then[t] - now[t]));
    }
    if (result.residual_us <= options.tolerance_us || result.sweeps >= options.max_sweeps) break;
    STEPCAST_ASSIGN(result.timeline, plan.simulate(next, simulate));
    result.costs = std::move(next);
    ++result.sweeps;
  }
  for (std::size_t b = 0; b < program.blocks().size(); ++b) {
    const auto now = std::as_const(result.costs).duration_us(BlockId{b});
    const auto own = alone.duration_us(BlockId{b});
    for (std::size_t t = 0; t < now.size(); ++t) result.stretched += now[t] > own[t] ? 1u : 0u;
  }
  return result;
}

}  // namespace stepcast
