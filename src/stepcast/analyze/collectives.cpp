#include "stepcast/analyze/collectives.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "stepcast/analyze/body_profiles.h"
#include "stepcast/analyze/detail/interval_set.h"

namespace stepcast {
namespace {

// Moments at which some stream of the class runs a kernel that is no communication.
detail::IntervalSet computing(const FlatProgram& flat, const TaskTimes& times, RankClassId c) {
  std::vector<Interval> busy;
  const RankClass& rank_class = flat.program().rank_class(c);
  const std::span<const Interval> of_class = times.of(c);
  for (std::size_t lane = 0; lane < rank_class.lanes.size(); ++lane) {
    if (rank_class.lanes[lane].kind != LaneKind::gpu_stream) continue;
    flat.for_each_on_lane(c, static_cast<std::uint16_t>(lane), [&](std::size_t task, const TaskInfo& info) {
      if (const BodyProfile* body = body_of(flat, info); body != nullptr) {
        if (flat.lane(c, task) == lane) body->add_computation(of_class[task], busy);
        return;
      }
      if (info.kind != TaskKind::kernel || info.kernel_class == KernelClass::communication) return;
      const Interval& at = of_class[task];
      // One after the other without a gap: most of them.
      if (at.length_us() <= 0) return;
      if (!busy.empty() && at.start_us == busy.back().end_us)
        busy.back().end_us = at.end_us;
      else
        busy.push_back(at);
    });
  }
  return detail::IntervalSet{std::move(busy)};
}

}  // namespace

double CollectiveOccurrence::start_us() const {
  double start = std::numeric_limits<double>::infinity();
  for (const CollectiveArrival& m : members) start = std::min(start, m.arrival_us);
  return start;
}

std::vector<CollectiveOccurrence> collective_occurrences(const FlatProgram& flat, const TaskTimes& times) {
  const Program& program = flat.program();
  std::vector<detail::IntervalSet> computation;
  for (std::size_t c = 0; c < flat.class_count(); ++c)
    computation.push_back(computing(flat, times, RankClassId{c}));
  std::vector<CollectiveOccurrence> all;
  all.reserve(program.collectives().size());
  std::vector<CollectiveStretch> stretches;
  for (std::size_t i = 0; i < program.collectives().size(); ++i) {
    const Collective& collective = program.collectives()[i];
    CollectiveOccurrence meeting;
    meeting.collective = CollectiveId{i};
    meeting.op = collective.op;
    meeting.name = collective.name;
    meeting.message_bytes = collective.message_bytes;
    meeting.transfer_us = std::numeric_limits<double>::infinity();
    collective_stretches(flat, times, CollectiveId{i}, stretches);
    meeting.members.reserve(stretches.size());
    for (std::size_t m = 0; m < stretches.size(); ++m) {
      const CollectiveMember& member = collective.members[m];
      const CollectiveStretch& s = stretches[m];
      const detail::IntervalSet& hidden = computation[member.rank_class.index()];
      meeting.members.push_back(
          {.rank_class = member.rank_class,
           .task = flat.flat({.rank_class = member.rank_class,
                              .rank = 0,
                              .instance = member.instance,
                              .task = member.task}),
           .arrival_us = s.arrival_us,
           .wait_us = s.wait_us(),
           .transfer_us = s.transfer_us(),
           .exposed_us = s.transfer_us() - hidden.covered_us({s.transfer_start_us, s.end_us}),
           .end_us = s.end_us});
      if (s.arrival_us > meeting.members[meeting.last].arrival_us) meeting.last = m;
      meeting.total_wait_us += s.wait_us();
      meeting.longest_wait_us = std::max(meeting.longest_wait_us, s.wait_us());
      meeting.transfer_us = std::min(meeting.transfer_us, s.transfer_us());
    }
    all.push_back(std::move(meeting));
  }
  std::vector<std::pair<double, std::size_t>>
      order;  // start, place before: those of one start keep their order
  order.reserve(all.size());
  for (std::size_t i = 0; i < all.size(); ++i) order.emplace_back(all[i].start_us(), i);
  std::sort(order.begin(), order.end());
  std::vector<CollectiveOccurrence> sorted;
  sorted.reserve(all.size());
  for (const auto& [start, i] : order) sorted.push_back(std::move(all[i]));
  return sorted;
}

}  // namespace stepcast
