#include "stepcast/analyze/collective_list.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <queue>
#include <string>
#include <string_view>
#include <utility>

#include "stepcast/analyze/body_profiles.h"
#include "stepcast/analyze/detail/interval_set.h"

namespace stepcast {
namespace {

// The name of a collective in the program; its operation if it has no name.
std::string_view name_of(const Program& program, const CollectiveOccurrence& occurrence) {
  const std::string_view name = program.names.text(occurrence.name);
  return name.empty() ? to_string(occurrence.op) : name;
}

// The entry of a forecast for a collective, without its number.
ForecastCollective collective_of(const FlatProgram& flat, const CollectiveOccurrence& o) {
  const Program& program = flat.program();
  ForecastCollective c;
  c.name = name_of(program, o);
  c.operation = to_string(o.op);
  const CollectiveArrival& any = o.members.front();
  const CollectiveWork* work = program.works.collective(flat.info(any.rank_class, any.task).work);
  c.group = work != nullptr && work->group.valid() ? program.groups()[work->group.index()].label
                                                   : std::string{kUnknownGroup};
  if (o.message_bytes >= 0) c.message_bytes = o.message_bytes;
  c.came_last = o.members[o.last].rank_class.index();
  c.transfer_us = o.transfer_us;
  c.total_wait_us = o.total_wait_us;
  c.longest_wait_us = o.longest_wait_us;
  c.members.reserve(o.members.size());
  for (const CollectiveArrival& m : o.members) {
    c.members.push_back({.rank_class = m.rank_class.index(),
                         .arrival_us = m.arrival_us,
                         .wait_us = m.wait_us,
                         .transfer_us = m.transfer_us,
                         .exposed_us = m.exposed_us});
  }
  return c;
}

std::size_t index_of(auto phase) { return static_cast<std::size_t>(phase); }

}  // namespace

CollectiveList::CollectiveList(const FlatProgram& flat, std::span<const CollectiveOccurrence> occurrences,
                               const SteadyRounds* rounds, std::size_t most)
    : most_(most) {
  const Program& program = flat.program();
  // A linear search by name is enough: programs have few names of collectives.
  std::vector<std::string_view> names;
  meetings_.reserve(occurrences.size());
  for (const CollectiveOccurrence& o : occurrences) {
    Meeting& meeting = meetings_.emplace_back();
    meeting.start_us = o.start_us();
    meeting.cost_us = o.total_wait_us + o.transfer_us;
    meeting.has_members = !o.members.empty();
    const std::string_view name = name_of(program, o);
    auto known = std::find(names.begin(), names.end(), name);
    if (known == names.end()) known = names.insert(names.end(), name);
    meeting.name = static_cast<std::uint32_t>(known - names.begin());
    // The phase follows from the instance of the root member.
    if (rounds != nullptr) {
      const CollectiveMember& root = program.collectives()[o.collective.index()].members.front();
      const LeftOutRounds::Round& round = rounds->left_out.of_class[root.rank_class.index()];
      const std::size_t instance = root.instance.index();
      meeting.phase = instance < round.begin ? Phase::before
                      : instance < round.end ? Phase::repeats
                                             : Phase::after;
    }
    ++counts_[index_of(meeting.phase)];
    if (meeting.has_members) ++listed_[index_of(meeting.phase)];
  }
  of_round_.assign(names.size(), 0);
  for (const Meeting& meeting : meetings_)
    if (meeting.phase == Phase::repeats) ++of_round_[meeting.name];
  keep_dearest(most);
  for (const std::uint32_t m : dearest_) {
    meetings_[m].shown = static_cast<std::uint32_t>(shown_.size());
    shown_.push_back(collective_of(flat, occurrences[m]));
  }
  if (rounds == nullptr || !(rounds->period_us > 0) || meetings_.empty()) return;
  // Two meetings that are at least this number of periods away from each other never change their order,
  // whichever rounds they are copied to.
  const auto [first, last] =
      std::minmax_element(meetings_.begin(), meetings_.end(),
                          [](const Meeting& a, const Meeting& b) { return a.start_us < b.start_us; });
  const double apart = std::ceil((last->start_us - first->start_us) / rounds->period_us) + 1;
  few_rounds_ = 2 * static_cast<std::uint64_t>(apart);
  few_ = number(few_rounds_, rounds->period_us);
}

// No more than `most` meetings of one phase can be listed, because all meetings of a phase are copied the
// same number of times and moved by the same time.
void CollectiveList::keep_dearest(std::size_t most) {
  for (std::uint32_t m = 0; m < meetings_.size(); ++m)
    if (meetings_[m].has_members) dearest_.push_back(m);
  std::stable_sort(dearest_.begin(), dearest_.end(), [&](std::uint32_t a, std::uint32_t b) {
    return meetings_[a].cost_us > meetings_[b].cost_us;
  });
  if (most == 0) return;
  std::size_t kept[kPhases] = {};
  std::erase_if(dearest_, [&](std::uint32_t m) { return ++kept[index_of(meetings_[m].phase)] > most; });
}

std::uint64_t CollectiveList::count(std::uint64_t rounds) const {
  return counts_[0] + (rounds + 1) * counts_[1] + counts_[2];
}

// A heap of the next copy of each meeting yields the copies in the order of time.
void CollectiveList::add_earliest(std::span<const std::uint32_t> meetings, std::uint64_t rounds,
                                  double period_us, std::size_t most, std::vector<Copy>& copies) const {
  const auto later = [](const Copy& a, const Copy& b) { return b < a; };
  std::priority_queue<Copy, std::vector<Copy>, decltype(later)> next{later};
  for (const std::uint32_t m : meetings) next.push(copy(m, first_round(meetings_[m], rounds), period_us));
  for (; most > 0 && !next.empty(); --most) {
    const Copy one = next.top();
    next.pop();
    copies.push_back(one);
    if (one.round < rounds && meetings_[one.meeting].phase == Phase::repeats)
      next.push(copy(one.meeting, one.round + 1, period_us));
  }
}

std::vector<CollectiveList::Copy> CollectiveList::chosen(std::uint64_t rounds, double period_us) const {
  const std::uint64_t all = listed_[0] + (rounds + 1) * listed_[1] + listed_[2];
  const std::uint64_t most = most_ == 0 ? all : std::min<std::uint64_t>(most_, all);
  std::vector<Copy> copies_chosen;
  copies_chosen.reserve(most);
  for (std::size_t begin = 0, end = 0; begin < dearest_.size() && copies_chosen.size() < most; begin = end) {
    std::uint64_t n = 0;
    const double cost_us = meetings_[dearest_[begin]].cost_us;
    for (; end < dearest_.size() && meetings_[dearest_[end]].cost_us == cost_us; ++end)
      n += copies(meetings_[dearest_[end]], rounds);
    const std::uint64_t left = most - copies_chosen.size();
    const auto equal = std::span{dearest_}.subspan(begin, end - begin);
    if (n > left) {  // several cost the same and not all fit: take the earliest
      add_earliest(equal, rounds, period_us, left, copies_chosen);
      continue;
    }
    for (const std::uint32_t m : equal) {
      const std::uint64_t first = first_round(meetings_[m], rounds);
      for (std::uint64_t i = 0; i < copies(meetings_[m], rounds); ++i)
        copies_chosen.push_back(copy(m, first + i, period_us));
    }
  }
  std::sort(copies_chosen.begin(), copies_chosen.end());
  return copies_chosen;
}

CollectiveList::Numbers CollectiveList::number(std::uint64_t rounds, double period_us) const {
  Numbers numbers{.rounds = rounds, .first = {}, .ordinal = {}};
  std::vector<Copy> all;
  all.reserve(count(rounds));
  numbers.first.reserve(meetings_.size());
  for (std::uint32_t m = 0; m < meetings_.size(); ++m) {
    numbers.first.push_back(static_cast<std::uint32_t>(all.size()));
    const std::uint64_t first = first_round(meetings_[m], rounds);
    for (std::uint64_t i = 0; i < copies(meetings_[m], rounds); ++i)
      all.push_back(copy(m, first + i, period_us));
  }
  // Round arrival times to a grid. Otherwise rounding errors would order simultaneous arrivals in a different
  // way in every round, and numbers would not repeat.
  constexpr double kSame = 1e-9;  // of a period
  if (period_us > 0)
    for (Copy& one : all) one.start_us = std::round(one.start_us / (kSame * period_us));
  std::sort(all.begin(), all.end());
  numbers.ordinal.resize(all.size());
  std::vector<std::uint32_t> seen(of_round_.size(), 0);
  for (const Copy& one : all) {
    const Meeting& meeting = meetings_[one.meeting];
    numbers.ordinal[numbers.first[one.meeting] + one.round - first_round(meeting, rounds)] =
        seen[meeting.name]++;
  }
  return numbers;
}

// `numbers` are of `rounds` rounds or fewer. If fewer, then of at least few_rounds_, so that a copy in the
// middle is far enough from both ends: each round that is added shifts it by the number of meetings per
// round.
std::uint32_t CollectiveList::ordinal(const Numbers& numbers, const Copy& copy, std::uint64_t rounds) const {
  const Meeting& meeting = meetings_[copy.meeting];
  const std::uint32_t first = numbers.first[copy.meeting];
  const std::uint64_t more = rounds - numbers.rounds;
  const auto later = [&](std::uint64_t n) { return static_cast<std::uint32_t>(n * of_round_[meeting.name]); };
  if (meeting.phase == Phase::before) return numbers.ordinal[first];
  if (meeting.phase == Phase::after) return numbers.ordinal[first] + later(more);
  const std::uint64_t middle = numbers.rounds / 2;
  const std::uint64_t passed = copy.round <= middle ? 0 : std::min(copy.round - middle, more);
  return numbers.ordinal[first + copy.round - passed] + later(passed);
}

std::vector<ForecastCollective> CollectiveList::listed(std::uint64_t rounds, double period_us) const {
  std::vector<ForecastCollective> list;
  if (meetings_.empty()) return list;
  // With few rounds all are written out. With more, the numbers of few_ are shifted.
  const bool few = few_.first.empty() || rounds < few_rounds_;
  const Numbers own = few ? number(rounds, period_us) : Numbers{};
  const std::vector<Copy> copies = chosen(rounds, period_us);
  list.reserve(copies.size());
  for (const Copy& one : copies) {
    ForecastCollective& c = list.emplace_back(shown_[meetings_[one.meeting].shown]);
    c.ordinal = ordinal(few ? own : few_, one, rounds);
    if (one.round == 0) continue;
    for (ForecastMember& m : c.members) m.arrival_us += static_cast<double>(one.round) * period_us;
  }
  return list;
}

namespace {

// The times in which some stream of the class runs a kernel that is not communication. Bodies contribute the
// times from their profiles.
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
      // Most kernels follow each other without a gap; they are merged here to keep the set small.
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
           // Exposed: the transfer minus the time in which the rank computes.
           .exposed_us = s.transfer_us() - hidden.covered_us({s.transfer_start_us, s.end_us}),
           .end_us = s.end_us});
      if (s.arrival_us > meeting.members[meeting.last].arrival_us) meeting.last = m;
      meeting.total_wait_us += s.wait_us();
      meeting.longest_wait_us = std::max(meeting.longest_wait_us, s.wait_us());
      meeting.transfer_us = std::min(meeting.transfer_us, s.transfer_us());
    }
    all.push_back(std::move(meeting));
  }
  // Pairs of start and index: collectives with the same start keep their order. Sorting pairs and moving once
  // is cheaper than sorting the collectives.
  std::vector<std::pair<double, std::size_t>> order;
  order.reserve(all.size());
  for (std::size_t i = 0; i < all.size(); ++i) order.emplace_back(all[i].start_us(), i);
  std::sort(order.begin(), order.end());
  std::vector<CollectiveOccurrence> sorted;
  sorted.reserve(all.size());
  for (const auto& [start, i] : order) sorted.push_back(std::move(all[i]));
  return sorted;
}

}  // namespace stepcast
