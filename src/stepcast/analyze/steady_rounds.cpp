#include "stepcast/analyze/steady_rounds.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

#include "stepcast/analyze/detail/interval_set.h"

namespace stepcast {
namespace {

// Times are the same if they differ by less than this fraction of the simulated time: rounding errors.
constexpr double kSameShare = 4e-11;

// One activity of a rank in a window, relative to the start of the window. The transfer that the rank waits
// for at the end of the window is left out, because in the last round no rank sends it.
struct Doing {
  std::uint16_t lane = 0;
  NameId name;
  Interval time;
};

// Calls visit(lane, TaskInfo, time) for the tasks of an instance.
template <class Visit>
void for_each_task(const FlatProgram& flat, const TaskTimes& times, RankClassId c, std::size_t instance,
                   Visit&& visit) {
  const Block& block = flat.program().block_of(c, InstanceId{instance});
  const std::size_t first = flat.flat(
      {.rank_class = c, .rank = 0, .instance = InstanceId{instance}, .task = TaskId{std::size_t{0}}});
  const std::span<const Interval> of_class = times.of(c);
  for (std::size_t t = 0; t < block.task_count(); ++t)
    visit(block.lane_codes()[t], block.tasks()[t], of_class[first + t]);
}

// The activities of a rank in a window next to a round. Only instances near the round are searched: others
// have no tasks there. Activities of at most `shortest_us` are left out.
std::vector<Doing> doings(const FlatProgram& flat, const TaskTimes& times, RankClassId c,
                          const LeftOutRounds::Round& round, Interval window, double shortest_us) {
  std::vector<Doing> all;
  const std::size_t length = round.end - round.begin;
  const std::size_t end =
      std::min<std::size_t>(round.end + length, flat.program().rank_class(c).instances.size());
  for (std::size_t i = round.begin - std::min<std::size_t>(round.begin, 2 * length); i < end; ++i) {
    for_each_task(flat, times, c, i, [&](std::uint16_t lane, const TaskInfo& info, const Interval& at) {
      if (info.kind == TaskKind::collective && at.end_us > window.end_us + shortest_us) return;
      const Interval own = detail::clip(at, window);
      if (own.length_us() <= shortest_us) return;
      all.push_back({lane, info.name, {own.start_us - window.start_us, own.end_us - window.start_us}});
    });
  }
  return all;
}

// The start of a round: the end of the last computation before it. At that moment only transfers are in
// progress.
double begin_of_round(const FlatProgram& flat, const TaskTimes& times, RankClassId c,
                      const LeftOutRounds::Round& round) {
  double end_us = 0;
  for (std::size_t i = round.begin; i-- > 0 && end_us == 0;) {
    for_each_task(flat, times, c, i, [&](std::uint16_t lane, const TaskInfo& /*info*/, const Interval& at) {
      if (lane == 0 && at.length_us() > 0) end_us = at.end_us;
    });
  }
  return end_us;
}

// Whether two lists of activities are equal within the tolerance.
bool same(const std::vector<Doing>& a, const std::vector<Doing>& b, double tolerance_us) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [&](const Doing& x, const Doing& y) {
    return x.lane == y.lane && x.name == y.name &&
           std::abs(x.time.start_us - y.time.start_us) <= tolerance_us &&
           std::abs(x.time.end_us - y.time.end_us) <= tolerance_us;
  });
}

// The steps of the path within one period: from a task back to the same task one period earlier. Nothing if
// the path does not pass the same task again.
std::optional<CriticalPath> round_of(const CriticalPath& path, const SteadyRounds& rounds,
                                     const FlatProgram& flat, double tolerance_us) {
  const auto ends_before = [](const PathStep& step, double us) { return step.time.end_us < us; };
  for (std::size_t last = path.steps.size(); last-- > 0;) {
    const PathStep& step = path.steps[last];
    if (step.kind != PathStep::Kind::task) continue;
    const LeftOutRounds::Round& round = rounds.left_out.of_class[step.rank_class.index()];
    TaskRef before = flat.ref(step.rank_class, step.task);
    const std::uint32_t length = round.end - round.begin, instance = before.instance.index();
    if (instance < round.begin || instance >= round.end || instance < length) continue;
    before.instance = InstanceId{std::size_t{instance - length}};
    const double end_us = step.time.end_us - rounds.period_us;
    auto first = std::lower_bound(path.steps.begin(), path.steps.end(), end_us - tolerance_us, ends_before);
    for (; first != path.steps.end() && first->time.end_us <= end_us + tolerance_us; ++first) {
      if (first->kind != step.kind || first->rank_class != step.rank_class ||
          first->task != flat.flat(before)) {
        continue;
      }
      const auto from = path.steps.begin() + (first - path.steps.begin()) + 1;
      return CriticalPath{.time = {first->time.end_us, step.time.end_us},
                          .last_rank = step.rank_class,
                          .steps = {from, path.steps.begin() + static_cast<std::ptrdiff_t>(last) + 1}};
    }
  }
  return std::nullopt;
}

// sum += count * round, element by element.
template <class Values>
void add_values(const Values& round, double count, Values& sum) {
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += count * round[i];
}

}  // namespace

std::optional<SteadyRounds> steady_rounds(const PredictedStep& step, const FlatProgram& flat,
                                          const TaskTimes& times, bool with_path) {
  if (step.rounds.of_class.empty()) return std::nullopt;
  SteadyRounds rounds{.left_out = step.rounds, .windows = {}, .path = {}, .round_of_path = {}};
  const double short_us = step.timeline.end_us(), tolerance_us = kSameShare * short_us;
  // The period follows from the length of the whole step, which the cost model knows without writing out all
  // rounds.
  rounds.period_us = (step.summary.times.step_us - short_us) / rounds.left_out.count;
  // Compare the period before each class's round with the round itself.
  for (std::size_t c = 0; c < flat.class_count(); ++c) {
    const double begin_us = begin_of_round(flat, times, RankClassId{c}, rounds.left_out.of_class[c]);
    const Interval before{begin_us - rounds.period_us, begin_us}, now{begin_us, begin_us + rounds.period_us};
    const auto in = [&](Interval window) {
      return doings(flat, times, RankClassId{c}, rounds.left_out.of_class[c], window, 2 * tolerance_us);
    };
    if (before.start_us < 0 || !same(in(before), in(now), tolerance_us)) return std::nullopt;
    rounds.windows.push_back(before);
  }
  if (!with_path) return rounds;
  const std::vector<double> starts(flat.class_count(), 0.0);
  rounds.path = critical_path(flat, times, step.prices.costs, starts);
  std::optional<CriticalPath> round = round_of(rounds.path, rounds, flat, tolerance_us + kTimeToleranceUs);
  if (!round) return std::nullopt;
  rounds.round_of_path = std::move(*round);
  return rounds;
}

void add_rounds(double count, double left_out_us, const RankBreakdown& round, RankBreakdown& rank) {
  const auto add = [&](auto member, auto& to, const auto& from) { to.*member += count * (from.*member); };
  const auto more = static_cast<std::uint64_t>(count);
  rank.window.end_us += left_out_us;
  for (const auto member :
       {&RankBreakdown::computation_us, &RankBreakdown::exposed_comm_us, &RankBreakdown::exposed_memcpy_us,
        &RankBreakdown::transfer_us, &RankBreakdown::collective_wait_us, &RankBreakdown::overlap_us,
        &RankBreakdown::gpu_active_us}) {
    add(member, rank, round);
  }
  add_values(round.class_us, count, rank.class_us);
  add_values(round.exposed_by_group_us, count, rank.exposed_by_group_us);
  add_values(round.idle.by_cause_us, count, rank.idle.by_cause_us);
  add_values(round.kernels_us, count, rank.kernels_us);
  for (std::size_t s = 0; s < rank.streams.size(); ++s) {
    StreamBreakdown& stream = rank.streams[s];
    for (const auto member :
         {&StreamBreakdown::computation_us, &StreamBreakdown::transfer_us, &StreamBreakdown::memcpy_us,
          &StreamBreakdown::exposed_comm_us, &StreamBreakdown::exposed_memcpy_us}) {
      add(member, stream, round.streams[s]);
    }
    add_values(round.streams[s].kernels_us, count, stream.kernels_us);
    add_values(round.streams[s].idle.by_cause_us, count, stream.idle.by_cause_us);
    stream.tasks += more * round.streams[s].tasks;
  }
  // Threads of described steps have one entry, since their tasks are in no framework operator.
  for (std::size_t t = 0; t < rank.threads.size(); ++t) {
    ThreadBreakdown& thread = rank.threads[t];
    add(&ThreadBreakdown::busy_us, thread, round.threads[t]);
    add_values(round.threads[t].idle.by_cause_us, count, thread.idle.by_cause_us);
    if (round.threads[t].busy_by_op.empty()) continue;
    add(&OpTime::time_us, thread.busy_by_op.front(), round.threads[t].busy_by_op.front());
    thread.busy_by_op.front().tasks += more * round.threads[t].busy_by_op.front().tasks;
  }
}

}  // namespace stepcast
