// Times of each kind are collected as sets first. Then each kind is reduced by the kinds with a higher
// priority, and what remains of the window at the end is split into gaps with causes.
#include "stepcast/analyze/detail/rank_parts.h"

#include <algorithm>
#include <utility>

namespace stepcast::detail {
namespace {

// When a task begins.
struct Begin {
  double at_us = 0;
  std::size_t task = 0;
};

// The union of two sets.
IntervalSet united(const IntervalSet& a, const IntervalSet& b) {
  std::vector<Interval> all(a.intervals().begin(), a.intervals().end());
  all.insert(all.end(), b.intervals().begin(), b.intervals().end());
  return IntervalSet{std::move(all)};
}

// The lowest-numbered task that begins at `us` (within kTimeToleranceUs); kNoTask if there is none.
std::size_t task_at(std::span<const Begin> begins, double us) {
  const auto first = std::lower_bound(begins.begin(), begins.end(), us - kTimeToleranceUs,
                                      [](const Begin& b, double at) { return b.at_us < at; });
  std::size_t task = kNoTask;
  for (auto b = first; b != begins.end() && b->at_us <= us + kTimeToleranceUs; ++b)
    task = std::min(task, b->task);
  return task;
}

// The latest end of the CPU threads' tasks, at least `from_us`.
double end_of_threads(const FlatProgram& flat, const TaskTimes& times, RankClassId c, double from_us) {
  const std::vector<Lane>& lanes = flat.program().rank_class(c).lanes;
  double end_us = from_us;
  for (std::size_t lane = 0; lane < lanes.size(); ++lane) {
    if (lanes[lane].kind != LaneKind::cpu_thread) continue;
    flat.for_each_on_lane(c, static_cast<std::uint16_t>(lane),
                          [&](std::size_t task, const TaskInfo& /*info*/) {
                            end_us = std::max(end_us, times.at(c, task).end_us);
                          });
  }
  return end_us;
}

}  // namespace

bool crosses_host_link(std::string_view copy_name) {
  for (const std::string_view sign : {"HtoD", "DtoH", "HostToDevice", "DeviceToHost"})
    if (copy_name.find(sign) != std::string_view::npos) return true;
  return false;
}

RankParts rank_parts(const FlatProgram& flat, const TaskTimes& times, const Costs& costs, RankClassId c,
                     Interval window, double rank_start_us,
                     std::span<const CollectiveOccurrence> occurrences) {
  RankParts parts;
  parts.window = window;
  std::vector<Interval> computation, transfer, copies, device_copies;
  std::vector<RankWait> waits;
  std::vector<Begin> begins;
  for (std::size_t i = 0; i < occurrences.size(); ++i) {
    for (const CollectiveArrival& m : occurrences[i].members) {
      if (m.rank_class != c) continue;
      transfer.push_back(clip({m.arrival_us + m.wait_us, m.end_us}, window));
      waits.push_back({clip({m.arrival_us, m.arrival_us + m.wait_us}, window), i});
    }
  }
  const RankClass& rank_class = flat.program().rank_class(c);
  for (std::size_t lane = 0; lane < rank_class.lanes.size(); ++lane) {
    if (rank_class.lanes[lane].kind != LaneKind::gpu_stream) continue;
    flat.for_each_on_lane(c, static_cast<std::uint16_t>(lane), [&](std::size_t task, const TaskInfo& info) {
      const Interval at = times.at(c, task);
      // Waiting tasks begin no work, so a gap does not end with them.
      if (info.kind == TaskKind::wait || at.end_us < window.start_us || at.start_us > window.end_us) return;
      begins.push_back({at.start_us, task});
      // Collectives were added above, from their occurrences.
      if (info.kind == TaskKind::collective) return;
      const bool copy = info.kind == TaskKind::memcpy || info.kind == TaskKind::memset;
      const bool sends = info.kernel_class == KernelClass::communication;
      if (copy) {
        const bool host = crosses_host_link(flat.program().names.text(info.name));
        (host ? copies : device_copies).push_back(clip(at, window));
      } else {
        (sends ? transfer : computation).push_back(clip(at, window));
      }
    });
  }
  std::sort(begins.begin(), begins.end(), [](const Begin& a, const Begin& b) {
    return a.at_us != b.at_us ? a.at_us < b.at_us : a.task < b.task;
  });
  // Each part excludes the parts before it.
  parts.computation = IntervalSet{std::move(computation)};
  parts.transfer = IntervalSet{std::move(transfer)}.minus(parts.computation);
  IntervalSet busy = united(parts.computation, parts.transfer);
  parts.copies = IntervalSet{std::move(copies)}.minus(busy);
  busy = united(busy, parts.copies);
  parts.device_copies = IntervalSet{std::move(device_copies)}.minus(busy);
  busy = united(busy, parts.device_copies);
  // If a rank waits in two collectives at the same time, the one that it entered first counts.
  std::stable_sort(waits.begin(), waits.end(),
                   [](const RankWait& a, const RankWait& b) { return a.time.start_us < b.time.start_us; });
  for (const RankWait& wait : waits) {
    if (wait.time.length_us() <= 0) continue;
    const IntervalSet own = IntervalSet{{wait.time}}.minus(busy);
    for (const Interval& time : own.intervals()) parts.waits.push_back({time, wait.occurrence});
    busy = united(busy, own);
  }
  std::sort(parts.waits.begin(), parts.waits.end(),
            [](const RankWait& a, const RankWait& b) { return a.time.start_us < b.time.start_us; });
  const IntervalSet all_idle = IntervalSet{{window}}.minus(busy);
  for (const Interval& gap : all_idle.intervals()) {
    const std::size_t next = gap.end_us < window.end_us ? task_at(begins, gap.end_us) : kNoTask;
    // The gap ends with GPU work: its cause is what that work waited for.
    if (next != kNoTask) {
      const IdleCause cause = idle_cause_before(flat, times, costs, c, next, rank_start_us);
      Interval host{gap.start_us, gap.start_us};
      if (cause == IdleCause::rest) host = before_launch(flat, times, costs, c, next, gap);
      if (host.length_us() > 0) parts.gaps.push_back({host, IdleCause::cpu, next});
      if (gap.end_us > host.end_us) parts.gaps.push_back({{host.end_us, gap.end_us}, cause, next});
      continue;
    }
    // After the last GPU work: time counts for the host until its threads end. What remains is rest.
    const double host_end = std::min(gap.end_us, end_of_threads(flat, times, c, gap.start_us));
    if (host_end > gap.start_us) parts.gaps.push_back({{gap.start_us, host_end}, IdleCause::cpu, kNoTask});
    if (host_end < gap.end_us) parts.gaps.push_back({{host_end, gap.end_us}, IdleCause::rest, kNoTask});
  }
  std::ranges::sort(parts.gaps, {}, [](const IdleGap& gap) { return gap.time.start_us; });
  return parts;
}

}  // namespace stepcast::detail
