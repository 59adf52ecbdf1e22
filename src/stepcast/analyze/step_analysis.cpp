#include "stepcast/analyze/step_analysis.h"

#include <algorithm>
#include <utility>

#include "stepcast/analyze/baseline.h"
#include "stepcast/analyze/body_profiles.h"
#include "stepcast/analyze/collective_list.h"
#include "stepcast/base/parallel.h"
#include "stepcast/base/stop.h"
#include "stepcast/base/units.h"

namespace stepcast {
namespace {

using Rank = StepAnalysis::Rank;

// stream_times_us() with bodies expanded: the representing task is replaced by the tasks of its body on all
// lanes.
std::vector<double> stream_us(const AnalysisInput& input, RankClassId c, InstanceRange instances) {
  const Program& program = input.flat.program();
  std::vector<double> us = stream_times_us(program, input.costs, c, instances);
  if (input.flat.bodies() == nullptr) return us;
  for (std::size_t i = instances.begin; i < instances.end; ++i) {
    const BlockId id = program.rank_class(c).instances[i].block;
    const Block& block = program.block(id);
    for (std::size_t t = 0; t < block.task_count(); ++t) {
      const BodyProfile* body = body_of(input.flat, block.tasks()[t]);
      if (body == nullptr) continue;
      us[block.lane_codes()[t]] -= input.costs.duration_us(id)[t];
      for (std::size_t lane = 0; lane < us.size(); ++lane) us[lane] += body->lanes[lane].tasks_us;
    }
  }
  return us;
}

// The entry of a rank, without rounds.
Rank rank_of(const AnalysisInput& input, RankBreakdown parts) {
  const Program& program = input.flat.program();
  const RankClassId c = parts.rank_class;
  const RankClass& rank_class = program.rank_class(c);
  const std::span<const double> starts = input.rank_start_us;
  Rank rank;
  rank.name = rank_class.name;
  if (rank_class.recorded_rank >= 0) rank.recorded_rank = rank_class.recorded_rank;
  rank.n_ranks = rank_class.multiplicity;
  if (!starts.empty())
    rank.start_offset_us = starts[c.index()] - *std::min_element(starts.begin(), starts.end());
  rank.parts = std::move(parts);
  rank.stream_us = stream_us(input, c, {0, rank_class.instances.size()});
  return rank;
}

// Sets the number of tasks in a round, by the instances of the round. Counting what touches the window would
// count tasks twice that cross its borders.
void count_tasks(const FlatProgram& flat, const LeftOutRounds::Round& instances, RankBreakdown& round) {
  const Program& program = flat.program();
  const RankClass& ranks = program.rank_class(round.rank_class);
  std::vector<std::uint64_t> tasks(ranks.lanes.size(), 0);
  for (std::uint32_t i = instances.begin; i < instances.end; ++i) {
    const Block& block = program.block(ranks.instances[i].block);
    for (std::size_t t = 0; t < block.task_count(); ++t) {
      const BodyProfile* body = body_of(flat, block.tasks()[t]);
      if (body == nullptr)
        ++tasks[block.lane_codes()[t]];
      else
        for (std::size_t lane = 0; lane < tasks.size(); ++lane) tasks[lane] += body->lanes[lane].tasks;
    }
  }
  for (StreamBreakdown& stream : round.streams) stream.tasks = tasks[stream.lane];
  // Tasks of a described step are in no framework operator, so there is at most one entry.
  for (ThreadBreakdown& thread : round.threads)
    if (!thread.busy_by_op.empty()) thread.busy_by_op.front().tasks = tasks[thread.lane];
}

// Breaks down every class, and the window of one round of it.
void add_ranks(const AnalysisInput& input, const AnalysisOptions& options, StepAnalysis& analysis) {
  const auto broken_down = [&](std::span<const Interval> windows) {
    return break_down(input.flat, input.times, input.costs, windows, input.rank_start_us, options.only);
  };
  for (RankBreakdown& parts : broken_down(input.windows))
    analysis.ranks.push_back(rank_of(input, std::move(parts)));
  if (input.rounds == nullptr) return;
  std::vector<RankBreakdown> rounds = broken_down(input.rounds->windows);
  for (std::size_t i = 0; i < rounds.size(); ++i) {
    const RankClassId c = rounds[i].rank_class;
    const LeftOutRounds::Round& instances = input.rounds->left_out.of_class[c.index()];
    count_tasks(input.flat, instances, rounds[i]);
    analysis.ranks[i].round = std::move(rounds[i]);
    analysis.ranks[i].round_stream_us = stream_us(input, c, {instances.begin, instances.end});
  }
}

// The parts of the whole path, each with the share of one round. Every part of a round occurs in the whole
// path.
std::vector<StepAnalysis::PathPart> parts_of(std::vector<PathShare> whole,
                                             const std::vector<PathShare>& round) {
  std::vector<StepAnalysis::PathPart> parts;
  parts.reserve(whole.size());
  for (PathShare& share : whole) {
    const auto more = std::find_if(round.begin(), round.end(),
                                   [&](const PathShare& one) { return one.what == share.what; });
    const bool has = more != round.end();
    parts.push_back(
        {std::move(share.what), share.time_us, has ? more->time_us : 0, share.steps, has ? more->steps : 0});
  }
  return parts;
}

// Fills in the critical path. With left-out rounds it was computed before, to check that it repeats.
void add_path(const AnalysisInput& input, const AnalysisOptions& options, StepAnalysis::Path& out) {
  CriticalPath own;
  if (input.rounds == nullptr)
    own = critical_path(input.flat, input.times, input.costs, input.rank_start_us, input.path);
  const CriticalPath& path = input.rounds != nullptr ? input.rounds->path : own;
  const CriticalPath none;
  const CriticalPath& round = input.rounds != nullptr ? input.rounds->round_of_path : none;
  out.length_us = path.time.length_us();
  if (path.last_rank.valid()) out.ends_on = path.last_rank.index();
  out.n_steps = step_count(input.flat, path);
  out.round_steps = step_count(input.flat, round);
  const auto parts = [&](const auto& by) { return parts_of(by(input.flat, path), by(input.flat, round)); };
  out.by_class = parts(path_by_class);
  out.by_rank = parts(path_by_rank);
  out.by_name = parts(path_by_name);
  if (!options.path_steps) return;
  for (const PathStep& step : path.steps) {
    out.steps.push_back({.rank_class = step.rank_class.index(),
                         .what = path_step_name(input.flat, step),
                         .start_ms = step.time.start_us * kMsPerUs,
                         .time_ms = step.time.length_us() * kMsPerUs});
  }
}

}  // namespace

StepAnalysis analyse(const AnalysisInput& input, const AnalysisOptions& options) {
  StepAnalysis analysis;
  for (const RankGroup& group : input.flat.program().groups()) analysis.groups.push_back(group.label);
  // Two independent parts run in parallel. They are short, so a stop request does not interrupt them.
  const StopScope to_the_end{std::stop_token{}};
  const Status done =
      parallel_for(options.only ? 1 : 2, input.flat.threads(), [&](std::size_t part) -> Status {
        if (part == 0) {
          add_ranks(input, options, analysis);
          return Ok{};
        }
        const std::vector<CollectiveOccurrence> occurrences = collective_occurrences(input.flat, input.times);
        analysis.collectives = CollectiveList{input.flat, occurrences, input.rounds, options.collectives};
        add_path(input, options, analysis.path);
        return Ok{};
      });
  static_cast<void>(done);  // nothing above fails
  return analysis;
}

}  // namespace stepcast
