// Times are stored as spans, so that those of a timeline with one instance per class, or measured times, need
// no copy. collective_stretches() derives waiting and transfer of a collective's members from their times.
#include "stepcast/analyze/task_times.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

namespace stepcast {

TaskTimes TaskTimes::simulated(const FlatProgram& flat, const Timeline& timeline) {
  return simulated(flat, timeline, false);
}

TaskTimes TaskTimes::referring_to(const FlatProgram& flat, const Timeline& timeline) {
  return simulated(flat, timeline, true);
}

TaskTimes TaskTimes::simulated(const FlatProgram& flat, const Timeline& timeline, bool referring) {
  TaskTimes times;
  times.origin_ = Origin::simulated;
  const Program& program = flat.program();
  for (std::size_t c = 0; c < program.rank_classes().size(); ++c) {
    const RankClass& rank_class = program.rank_classes()[c];
    // One instance: its times are contiguous in the timeline and need no copy.
    if (referring && rank_class.instances.size() == 1) {
      times.times_.push_back(timeline.instance(RankClassId{c}, 0, InstanceId{0}));
      continue;
    }
    std::vector<Interval>& of_class = times.joined_.emplace_back();
    // The times of several instances are joined in the order of the instances, which is that of flat numbers.
    of_class.reserve(flat.task_count(RankClassId{c}));
    for (std::size_t i = 0; i < rank_class.instances.size(); ++i) {
      const std::span<const Interval> instance = timeline.instance(RankClassId{c}, 0, InstanceId{i});
      of_class.insert(of_class.end(), instance.begin(), instance.end());
    }
    times.times_.emplace_back(of_class);
  }
  return times;
}

// The sizes are checked here once, so that at() need not check indices.
Result<TaskTimes> TaskTimes::measured(const FlatProgram& flat,
                                      std::span<const std::vector<Interval>> intervals) {
  if (intervals.size() != flat.class_count()) {
    return Error{fmt::format("measured times of {} rank classes for a program of {}", intervals.size(),
                             flat.class_count())};
  }
  TaskTimes times;
  times.origin_ = Origin::measured;
  for (std::size_t c = 0; c < intervals.size(); ++c) {
    if (intervals[c].size() != flat.task_count(RankClassId{c})) {
      return Error{fmt::format("{} measured times for the {} tasks of {}", intervals[c].size(),
                               flat.task_count(RankClassId{c}), flat.program().rank_classes()[c].name)};
    }
    times.times_.push_back(intervals[c]);
  }
  return times;
}

double TaskTimes::end_us(RankClassId c, double otherwise) const {
  double end = -std::numeric_limits<double>::infinity();
  for (const Interval& interval : of(c)) end = std::max(end, interval.end_us);
  return of(c).empty() ? otherwise : end;
}

std::vector<CollectiveStretch> collective_stretches(const FlatProgram& flat, const TaskTimes& times,
                                                    CollectiveId id) {
  std::vector<CollectiveStretch> stretches;
  collective_stretches(flat, times, id, stretches);
  return stretches;
}

void collective_stretches(const FlatProgram& flat, const TaskTimes& times, CollectiveId id,
                          std::vector<CollectiveStretch>& stretches) {
  const Collective& collective = flat.program().collectives()[id.index()];
  stretches.clear();
  stretches.reserve(collective.members.size());
  // First pass: the stay of every member, the last arrival and the shortest stay.
  double last_arrival = -std::numeric_limits<double>::infinity();
  double shortest = std::numeric_limits<double>::infinity();
  for (const CollectiveMember& m : collective.members) {
    const Interval& in =
        times.at(m.rank_class,
                 flat.flat({.rank_class = m.rank_class, .rank = 0, .instance = m.instance, .task = m.task}));
    stretches.push_back({in.start_us, in.start_us, in.end_us});
    last_arrival = std::max(last_arrival, in.start_us);
    shortest = std::min(shortest, in.length_us());
  }
  for (std::size_t i = 0; i < stretches.size(); ++i) {
    CollectiveStretch& s = stretches[i];
    // Second pass: when each member's transfer starts.
    double until = last_arrival;
    // Data comes from the root: members only wait for the root.
    if (collective.kind == CollectiveKind::rooted_from)
      until = std::max(s.arrival_us, stretches[collective.root].arrival_us);
    // Clocks of ranks may disagree, so measured transfers are given the length of the shortest stay instead.
    if (times.origin() == TaskTimes::Origin::measured && until > s.arrival_us) until = s.end_us - shortest;
    s.transfer_start_us = std::clamp(until, s.arrival_us, std::max(s.arrival_us, s.end_us));
  }
}

}  // namespace stepcast
