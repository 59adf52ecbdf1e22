#include "lab/trace_baselines.h"

#include <algorithm>

#include "stepcast/cost/analytic_model.h"
#include "stepcast/cost/collective_curve.h"
#include "stepcast/predict/replay.h"

#include "lab/published_algorithm.h"
#include "lab/published_overheads.h"

namespace stepcast {
namespace {

// Hidden share of transfers if no other rank or step determines it. Assumed.
constexpr double kAssumedOverlap = 0.5;

const Block& block_of(const RecordedProgram& recorded, std::size_t c) {
  return recorded.program.block_of(RankClassId{c}, InstanceId{0});
}

bool is_transfer(const TaskInfo& task) {
  return task.kind == TaskKind::collective || task.kernel_class == KernelClass::communication;
}
bool is_computation(const TaskInfo& task) {
  return !is_transfer(task) &&
         (task.kind == TaskKind::kernel || task.kind == TaskKind::memcpy || task.kind == TaskKind::memset);
}

// Recorded GPU times of one rank; transfers without waiting for other ranks.
struct GpuTime {
  double computation_us = 0, transfers_us = 0;
  [[nodiscard]] double shorter_us() const { return std::min(computation_us, transfers_us); }
};
GpuTime gpu_time(const RecordedProgram& recorded, std::size_t c) {
  const Block& block = block_of(recorded, c);
  const std::vector<bool> left_over = left_over_tasks(block);
  GpuTime time;
  for (std::uint32_t t = 0; t < block.task_count(); ++t) {
    if (left_over[t]) continue;
    if (is_transfer(block.tasks()[t])) time.transfers_us += block.duration_us()[t];
    if (is_computation(block.tasks()[t])) time.computation_us += block.duration_us()[t];
  }
  return time;
}

// The hidden share that reproduces the recorded step; nullopt if the rank has no transfers that could be hidden.
std::optional<double> overlap_of(const RecordedProgram& recorded, std::size_t c) {
  const GpuTime time = gpu_time(recorded, c);
  if (time.shorter_us() <= 0) return std::nullopt;
  const double hidden = time.computation_us + time.transfers_us - recorded.facts[c].step_us.length_us();
  return std::clamp(hidden / time.shorter_us(), 0.0, 1.0);
}

}  // namespace

std::vector<BaselineStep> speed_of_light(const RecordedJob& job, const Platform& platform) {
  const RecordedProgram& recorded = job.steps.back();
  const AnalyticModel model{platform.device};
  const double link_per_us = platform.node.intra.bandwidth_per_gpu.value() * 1e-6;
  std::vector<BaselineStep> steps;
  for (std::size_t c = 0; c < recorded.facts.size(); ++c) {
    const Block& block = block_of(recorded, c);
    const std::vector<bool> left_over = left_over_tasks(block);
    double computation_us = 0, transfers_us = 0;
    for (std::uint32_t t = 0; t < block.task_count(); ++t) {
      const TaskInfo& task = block.tasks()[t];
      if (left_over[t]) continue;
      if (const Operation* operation = recorded.program.works.operation(task.work)) {
        computation_us += model.lower_bound(*operation).value() * task.work_times;
      } else if (const CollectiveWork* work = recorded.program.works.collective(task.work);
                 work != nullptr && work->group.valid() && link_per_us > 0) {
        const auto ranks = recorded.program.groups()[work->group.index()].ranks.size();
        if (ranks > 1)
          transfers_us += bus_factor(work->op, static_cast<std::uint32_t>(ranks)) *
                          std::max(0.0, work->message.value()) / link_per_us;
      }
    }
    const double us = std::max(computation_us, transfers_us);
    if (us > 0) steps.push_back({c, us, 0});
  }
  return steps;
}

std::vector<BaselineStep> overlap_factor(const RecordedJob& job) {
  const RecordedProgram& recorded = job.steps.back();
  std::vector<BaselineStep> steps;
  for (std::size_t c = 0; c < recorded.facts.size(); ++c) {
    const GpuTime time = gpu_time(recorded, c);
    if (time.computation_us + time.transfers_us <= 0) continue;
    std::vector<double> learned;
    for (std::size_t o = 0; o < recorded.facts.size(); ++o)
      if (const auto overlap = o == c ? std::nullopt : overlap_of(recorded, o)) learned.push_back(*overlap);
    for (std::size_t s = 0; recorded.facts.size() == 1 && s + 1 < job.steps.size(); ++s)
      if (const auto overlap = overlap_of(job.steps[s], 0)) learned.push_back(*overlap);
    double overlap = learned.empty() ? kAssumedOverlap : 0;
    for (const double one : learned) overlap += one / static_cast<double>(learned.size());
    steps.push_back(
        {c, time.computation_us + time.transfers_us - overlap * time.shorter_us(), learned.size()});
  }
  return steps;
}

std::vector<BaselineStep> published_algorithm(const RecordedJob& job, const TraceSet& set,
                                              StepPricer& prices) {
  const RecordedProgram& recorded = job.steps.back();
  const std::size_t n = recorded.facts.size();
  if (n < 2 || job.steps.size() > 1 || recorded.facts.front().step_number < 0) return {};
  std::vector<UntimedRank> ranks;
  std::vector<OverheadSamples> samples;
  for (std::size_t r = 0; r < n; ++r) {
    if (!set.execution_traces[r]) return {};
    const RecordedStepFacts& facts = recorded.facts[r];
    ranks.push_back({&*set.execution_traces[r], facts.rank, facts.step_us.start_us, 0});
    samples.push_back(published_overheads(set.ranks[r]));
  }
  std::vector<BaselineStep> steps;
  for (std::size_t c = 0; c < n; ++c) {
    OverheadSamples of_others;
    for (std::size_t o = 0; o < n; ++o)
      if (o != c) of_others.add(samples[o]);
    const Result<PublishedTraceStep> published =
        published_step(ranks, published_host_overheads(of_others), prices);
    if (!published.ok()) return {};
    const Result<ReplayScores> scores = score_replay(published->recorded, Costs{published->recorded.program});
    if (!scores.ok()) return {};
    const double loading_us = data_loader_us(recorded, RankClassId{c});
    steps.push_back({c, scores->ranks[c].step.simulated_us + loading_us, n - 1});
  }
  return steps;
}

}  // namespace stepcast
