// Simulates a rebuilt program and compares its steps, GPU windows, kernel starts and waits in collectives
// with the record.
#include "stepcast/predict/replay.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "stepcast/base/statistics.h"
#include "stepcast/rebuild/recorded_variants.h"

namespace stepcast {
namespace {

bool is_gpu_task(const Block& block, std::size_t task) {
  return block.lanes()[block.lane_codes()[task]].kind == LaneKind::gpu_stream;
}

// The only block of a rank class in a recorded program.
const Block& block_of(const Program& program, std::size_t c) {
  return program.block_of(RankClassId{c}, InstanceId{0});
}

// The simulated step of a rank and the end of its GPU work.
struct RankWindow {
  Interval step;
  double gpu_end_us = 0;
};

// Only GPU work that the recorded window includes counts, so that measured and simulated windows cover the
// same tasks.
RankWindow simulated_window(const RecordedProgram& recorded, const Timeline& timeline, std::size_t c) {
  const RecordedStepFacts& facts = recorded.facts[c];
  const Block& block = block_of(recorded.program, c);
  const std::span<const Interval> at = timeline.instance(RankClassId{c}, 0, InstanceId{0});
  RankWindow window{.step = simulated_step(recorded, timeline, RankClassId{c})};
  window.gpu_end_us = window.step.start_us;
  const std::vector<bool> left_over = left_over_tasks(block);
  for (std::size_t t = 0; t < at.size(); ++t) {
    const bool in_window = recorded.measured[c][t].end_us <= facts.gpu_window_end_us + 1e-3;
    if (is_gpu_task(block, t) && !left_over[t] && in_window) {
      window.gpu_end_us = std::max(window.gpu_end_us, at[t].end_us);
    }
  }
  return window;
}

// Time in the step during which the thread on `lane` runs no task.
double idle_of_main_thread(const Block& block, std::span<const Interval> at, std::uint16_t lane,
                           Interval step) {
  double busy = 0;
  for (std::size_t t = 0; t < at.size(); ++t) {
    if (block.lane_codes()[t] != lane) continue;
    const double inside = std::min(at[t].end_us, step.end_us) - std::max(at[t].start_us, step.start_us);
    busy += std::max(0.0, inside);
  }
  return std::max(0.0, step.length_us() - busy);
}

// Fills scores.collective_waits. The shortest stay in a collective is its transfer; the remainder of each
// stay is waiting.
void score_collectives(const RecordedProgram& recorded, ReplayScores& scores) {
  const Program& program = recorded.program;
  for (std::size_t i = 0; i < program.collectives().size(); ++i) {
    const Collective& collective = program.collectives()[i];
    if (collective.members.size() < 2) continue;
    double shortest_recorded = std::numeric_limits<double>::infinity();
    double shortest_simulated = std::numeric_limits<double>::infinity();
    std::vector<CollectiveWait> waits;
    for (const CollectiveMember& m : collective.members) {
      const double stay_recorded = recorded.measured[m.rank_class.index()][m.task.index()].length_us();
      const double stay_simulated =
          scores.timeline.at({.rank_class = m.rank_class, .rank = 0, .instance = m.instance, .task = m.task})
              .length_us();
      shortest_recorded = std::min(shortest_recorded, stay_recorded);
      shortest_simulated = std::min(shortest_simulated, stay_simulated);
      waits.push_back({CollectiveId{i}, m.rank_class, stay_recorded, stay_simulated});
    }
    for (CollectiveWait& wait : waits) {
      wait.recorded_us -= shortest_recorded;
      wait.simulated_us -= shortest_simulated;
      scores.collective_waits.push_back(wait);
    }
  }
}

// Sets the kept delays of hand-offs in the facts to those of `costs`.
void count_kept_handoffs(RecordedProgram& recorded, const Costs& costs) {
  for (std::size_t c = 0; c < recorded.facts.size(); ++c) {
    const std::span<const EdgeInfo> edges = block_of(recorded.program, c).edge_infos();
    const std::span<const double> delays =
        costs.delay_us(recorded.program.rank_class(RankClassId{c}).instances.front().block);
    double& kept = recorded.facts[c].kept_delay_us[static_cast<std::size_t>(EdgeOrigin::thread_handoff)];
    kept = 0;
    for (std::size_t e = 0; e < edges.size(); ++e) {
      if (edges[e].origin == EdgeOrigin::thread_handoff) kept += delays[e];
    }
  }
}

// Neutral element of around().
constexpr Interval kNoWindow{std::numeric_limits<double>::infinity(),
                             -std::numeric_limits<double>::infinity()};

// The smallest interval that contains both.
Interval around(const Interval& a, const Interval& b) {
  return {std::min(a.start_us, b.start_us), std::max(a.end_us, b.end_us)};
}

// Replays every rank separately, without GPU dependencies and without waiting for other ranks. `handoffs`:
// costs of hand-offs; null: as recorded.
Result<ReplayScores> score_naive(const RecordedProgram& recorded, const SmallestHandoffs* handoffs) {
  ReplayScores all{.measured_window = kNoWindow, .simulated_window = kNoWindow};
  for (std::size_t c = 0; c < recorded.facts.size(); ++c) {
    STEPCAST_ASSIGN(const RecordedProgram rank, without_gpu_dependencies(recorded, RankClassId{c}));
    STEPCAST_ASSIGN(
        const ReplayScores one,
        score_replay(rank, handoffs != nullptr ? handoffs->costs(rank.program) : Costs{rank.program}));
    all.ranks.push_back(one.ranks.front());
    all.measured_window = around(all.measured_window, one.measured_window);
    all.simulated_window = around(all.simulated_window, one.simulated_window);
  }
  all.global_window = {all.measured_window.length_us(), all.simulated_window.length_us()};
  return all;
}

}  // namespace

ErrorSpread error_spread(std::vector<double> errors_us) {
  std::sort(errors_us.begin(), errors_us.end());
  return {.n = errors_us.size(),
          .median_us = nearest_rank_quantile(errors_us, 0.5),
          .p95_us = nearest_rank_quantile(errors_us, 0.95),
          .max_us = errors_us.empty() ? 0 : errors_us.back()};
}

bool is_far_off(const ReplayedRank& rank) {
  constexpr double kStepError = 0.02, kStartErrorOfStep = 0.01;
  return std::abs(rank.step.error()) > kStepError ||
         rank.kernel_start.p95_us > kStartErrorOfStep * rank.step.measured_us;
}

std::optional<std::string> far_off_warning(const RecordedProgram& recorded, const ReplayScores& scores) {
  const auto start_error = [](const ReplayedRank& rank) {
    return rank.step.measured_us > 0 ? rank.kernel_start.p95_us / rank.step.measured_us : 0;
  };
  const auto distance = [&](const ReplayedRank& rank) {
    return std::max(std::abs(rank.step.error()), start_error(rank));
  };
  std::size_t n = 0;
  std::optional<std::size_t> worst;
  for (std::size_t c = 0; c < scores.ranks.size(); ++c) {
    if (!is_far_off(scores.ranks[c])) continue;
    ++n;
    if (!worst || distance(scores.ranks[c]) > distance(scores.ranks[*worst])) worst = c;
  }
  if (!worst) return std::nullopt;
  const ReplayedRank& rank = scores.ranks[*worst];
  const RecordedStepFacts& facts = recorded.facts[*worst];
  const double step_us = rank.step.measured_us > 0 ? rank.step.measured_us : 1;
  return fmt::format(
      "{} of {} ranks differ much from their record. Rank {}: step {:+.1f} %, GPU starts off by {:.1f} % of "
      "the step (95th percentile). Not explained: {:.1f} % waiting in calls, {:.1f} % late GPU work",
      n, scores.ranks.size(), rank.rank, 100 * rank.step.error(), 100 * start_error(rank),
      100 * facts.unexplained_wait_us / step_us, 100 * facts.gpu_late_us / step_us);
}

bool CollectiveWait::agrees() const {
  return std::abs(simulated_us - recorded_us) <= 0.05 * recorded_us + 20.0;
}

double ReplayScores::longest_step_us() const {
  double us = 0;
  for (const ReplayedRank& rank : ranks) us = std::max(us, rank.step.simulated_us);
  return us;
}

Interval simulated_step(const RecordedProgram& recorded, const Timeline& timeline, RankClassId c) {
  const RecordedStepFacts& facts = recorded.facts[c.index()];
  Interval step;
  // The distance between the first CPU event of the rank and the step is kept as recorded.
  step.start_us =
      facts.step_us.start_us + (timeline.start_offset_us(c) - recorded.start_offset_us[c.index()]);
  if (!facts.step_end_task.valid()) {
    step.end_us = timeline.rank_end_us(c);
  } else {
    const Interval& last = timeline.instance(c, 0, InstanceId{0})[facts.step_end_task.index()];
    step.end_us = facts.step_ends_at_start ? last.start_us : last.end_us;
  }
  return step;
}

std::vector<bool> left_over_tasks(const Block& block) {
  std::vector<bool> left_over(block.task_count(), false);
  for (std::size_t t = 0; t < block.task_count(); ++t) {
    if (!is_gpu_task(block, t)) continue;
    bool at_offset = false, launched = false;
    for (std::uint32_t e = block.first_edge()[t]; e < block.first_edge()[t + 1]; ++e) {
      const EdgeOrigin origin = block.edge_infos()[e].origin;
      at_offset |= origin == EdgeOrigin::recorded_offset;
      launched |= origin == EdgeOrigin::launch;
    }
    left_over[t] = at_offset && !launched;
  }
  return left_over;
}

Result<ReplayScores> score_replay(const RecordedProgram& recorded, const Costs& costs) {
  STEPCAST_ASSIGN(const Plan plan, Plan::compile(recorded.program));
  STEPCAST_ASSIGN(Timeline timeline,
                  plan.simulate(costs, {.unfold = false, .start_offset_us = recorded.start_offset_us}));
  ReplayScores scores;
  scores.timeline = std::move(timeline);
  Interval measured_global = kNoWindow, simulated_global = kNoWindow;
  std::vector<double> all_errors;
  for (std::size_t c = 0; c < recorded.facts.size(); ++c) {
    const RecordedStepFacts& facts = recorded.facts[c];
    const Block& block = block_of(recorded.program, c);
    const std::span<const Interval> at = scores.timeline.instance(RankClassId{c}, 0, InstanceId{0});
    const RankWindow window = simulated_window(recorded, scores.timeline, c);
    ReplayedRank rank;
    rank.rank_class = RankClassId{c};
    rank.rank = facts.rank;
    rank.simulated_step = window.step;
    rank.step = {facts.step_us.length_us(), window.step.length_us()};
    rank.gpu_window = {facts.gpu_window_end_us - facts.step_us.start_us,
                       window.gpu_end_us - window.step.start_us};
    if (facts.step_end_task.valid()) {
      rank.simulated_wait_us =
          idle_of_main_thread(block, at, block.lane_codes()[facts.step_end_task.index()], window.step);
    }
    std::vector<double> errors;
    const std::vector<bool> left_over = left_over_tasks(block);
    for (std::size_t t = 0; t < at.size(); ++t) {
      if (!is_gpu_task(block, t) || left_over[t]) continue;
      const double measured = recorded.measured[c][t].start_us - facts.step_us.start_us;
      const double simulated = at[t].start_us - window.step.start_us;
      errors.push_back(std::abs(simulated - measured));
    }
    all_errors.insert(all_errors.end(), errors.begin(), errors.end());
    rank.kernel_start = error_spread(std::move(errors));
    measured_global.start_us = std::min(measured_global.start_us, facts.step_us.start_us);
    measured_global.end_us =
        std::max({measured_global.end_us, facts.step_us.end_us, facts.gpu_window_end_us});
    simulated_global.start_us = std::min(simulated_global.start_us, window.step.start_us);
    simulated_global.end_us = std::max({simulated_global.end_us, window.step.end_us, window.gpu_end_us});
    scores.ranks.push_back(rank);
  }
  scores.measured_window = measured_global;
  scores.simulated_window = simulated_global;
  if (!scores.ranks.empty()) {
    scores.global_window = {measured_global.length_us(), simulated_global.length_us()};
  }
  scores.kernel_start = error_spread(std::move(all_errors));
  score_collectives(recorded, scores);
  return scores;
}

Result<Replay> replay(std::span<const RecordedInput> inputs, const ReplayOptions& options) {
  STEPCAST_ASSIGN(RecordedProgram recorded, rebuild_program(inputs, options.rebuild));
  return replay_recorded(std::move(recorded), options);
}

Result<Replay> replay_recorded(RecordedProgram program, const ReplayOptions& options) {
  Replay result;
  result.recorded = std::move(program);
  RecordedProgram& recorded = result.recorded;
  const auto add_variant = [&](std::string name, const Result<ReplayScores>& scores) {
    if (!scores.ok()) {
      recorded.notes.push_back(fmt::format("no {} replay: {}", name, scores.error().message()));
      return;
    }
    ReplayVariant variant;
    variant.name = std::move(name);
    for (const ReplayedRank& rank : scores->ranks) {
      variant.step.push_back(rank.step);
      variant.gpu_window.push_back(rank.gpu_window);
    }
    variant.global_window = scores->global_window;
    result.variants.push_back(std::move(variant));
  };
  const SmallestHandoffs handoffs{recorded};
  // Variants come first, since the second one needs as much memory as the replay. It is freed before the
  // replay.
  if (options.compare_variants) {
    add_variant("naive", score_naive(recorded, options.smallest_handoff ? &handoffs : nullptr));
    add_variant("smallest_handoff", score_replay(recorded, handoffs.costs(recorded.program)));
  }
  result.costs = Costs{recorded.program};
  if (options.smallest_handoff) {
    result.costs = handoffs.costs(recorded.program);
    count_kept_handoffs(recorded, result.costs);
  }
  STEPCAST_ASSIGN(static_cast<ReplayScores&>(result), score_replay(recorded, result.costs));
  return result;
}

}  // namespace stepcast
