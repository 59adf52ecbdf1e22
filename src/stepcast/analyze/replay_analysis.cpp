#include "stepcast/analyze/replay_analysis.h"

#include <span>
#include <utility>

namespace stepcast {

Result<ReplayAnalysis> analyze_replay(const Replay& replay) {
  const RecordedProgram& recorded = replay.recorded;
  FlatProgram flat{recorded.program};
  Costs costs{recorded.program};
  TaskTimes simulated = TaskTimes::simulated(flat, replay.timeline);
  STEPCAST_ASSIGN(TaskTimes measured, TaskTimes::measured(flat, recorded.measured));

  std::vector<Interval> simulated_steps, measured_steps;
  for (const ReplayedRank& rank : replay.ranks) simulated_steps.push_back(rank.simulated_step);
  for (const RecordedStepFacts& facts : recorded.facts) measured_steps.push_back(facts.step_us);
  const std::span<const double> starts = recorded.start_offset_us;

  CriticalPathOptions to_end;  // the last end of a step, not of what the trace holds after it
  double latest = 0;
  for (std::size_t c = 0; c < replay.ranks.size(); ++c) {
    const RecordedStepFacts& facts = recorded.facts[c];
    const double end = replay.ranks[c].simulated_step.end_us;
    if (!facts.step_end_task.valid() || (to_end.to_rank && end <= latest + kTimeToleranceUs)) continue;
    latest = end;
    to_end.to_rank = RankClassId{c};
    to_end.to_task = flat.flat(
        {.rank_class = RankClassId{c}, .rank = 0, .instance = InstanceId{0}, .task = facts.step_end_task});
    to_end.to_start = facts.step_ends_at_start;
  }

  std::vector<StreamBaseline> baseline_of;
  for (std::size_t c = 0; c < flat.class_count(); ++c) {
    baseline_of.push_back(stream_baseline(recorded.program, costs, RankClassId{c}));
  }
  std::vector<RankBreakdown> simulated_ranks = break_down(flat, simulated, costs, simulated_steps, starts);
  std::vector<RankBreakdown> measured_ranks = break_down(flat, measured, costs, measured_steps, starts);
  std::vector<CollectiveOccurrence> simulated_collectives = collective_occurrences(flat, simulated);
  std::vector<CollectiveOccurrence> measured_collectives = collective_occurrences(flat, measured);
  CriticalPath path = critical_path(flat, simulated, costs, starts, to_end);
  return ReplayAnalysis{.replay = &replay,
                        .flat = std::move(flat),
                        .costs = std::move(costs),
                        .simulated = std::move(simulated),
                        .measured = std::move(measured),
                        .simulated_ranks = std::move(simulated_ranks),
                        .measured_ranks = std::move(measured_ranks),
                        .simulated_collectives = std::move(simulated_collectives),
                        .measured_collectives = std::move(measured_collectives),
                        .path = std::move(path),
                        .baseline = stream_baseline(recorded.program, Costs{recorded.program}),
                        .baseline_of = std::move(baseline_of)};
}

}  // namespace stepcast
