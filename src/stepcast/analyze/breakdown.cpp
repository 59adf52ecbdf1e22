#include "stepcast/analyze/breakdown.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include "stepcast/analyze/detail/interval_set.h"

namespace stepcast {
namespace {

using detail::clip;
using detail::IntervalSet;

// What a GPU does at a moment, most telling first: the sweep reports the first that is present.
enum Activity : std::uint8_t { kComputation, kTransfer, kCopy, kCollectiveWait, kActivityCount };

struct Stretch {
  Interval time;
  Activity activity;
};

bool is_copy(TaskKind kind) { return kind == TaskKind::memcpy || kind == TaskKind::memset; }

class RankSweep {
 public:
  RankSweep(const FlatProgram& flat, const TaskTimes& times, const Costs& costs, RankClassId c,
            Interval window, double rank_start_us, const std::vector<double>& transfer_start_us)
      : flat_(flat),
        times_(times),
        costs_(costs),
        class_(c),
        window_(window),
        rank_start_us_(rank_start_us),
        transfer_start_us_(transfer_start_us),
        rank_class_(flat.program().rank_class(c)) {}

  RankBreakdown run() {
    result_.rank_class = class_;
    result_.window = window_;
    for (std::size_t lane = 0; lane < rank_class_.lanes.size(); ++lane) {
      const auto lane_index = static_cast<std::uint16_t>(lane);
      if (rank_class_.lanes[lane].kind == LaneKind::gpu_stream) {
        sweep_stream(lane_index);
      } else {
        sweep_thread(lane_index);
      }
    }
    sweep_rank();
    return std::move(result_);
  }

 private:
  IdleCause cause_before(std::size_t task) const {
    return idle_cause(flat_, class_, task, binding_of(flat_, times_, costs_, class_, task, rank_start_us_));
  }

  // Adds the part of [from, to] that lies in the window.
  void add_idle(IdleTime& idle, IdleCause cause, double from, double to) const {
    const double length = clip({from, to}, window_).length_us();
    if (length > 0) idle.add(cause, length);
  }

  void sweep_stream(std::uint16_t lane) {
    StreamBreakdown stream;
    stream.lane = lane;
    stream.name = rank_class_.lanes[lane].name;
    double free_from =
        window_.start_us;  // recorded neighbours may overlap by rounding: nothing is counted twice
    for (const std::size_t task : flat_.lane_tasks(class_, lane)) {
      const Interval& at = times_.at(class_, task);
      starts_.push_back({at.start_us, task});
      if (at.start_us > free_from) add_idle(stream.idle, cause_before(task), free_from, at.start_us);
      const Interval own = clip({std::max(at.start_us, free_from), at.end_us}, window_);
      free_from = std::max(free_from, at.end_us);
      if (at.end_us <= window_.start_us || at.start_us >= window_.end_us) continue;
      ++stream.tasks;
      const TaskInfo& info = flat_.info(class_, task);
      if (info.kind == TaskKind::wait) {
        if (own.length_us() > 0) stream.idle.add(IdleCause::rest, own.length_us());
      } else if (info.kind == TaskKind::collective) {
        const double transfer_start = transfer_start_us_[task];
        add({at.start_us, transfer_start}, kCollectiveWait);
        add({transfer_start, at.end_us}, kTransfer);
        const Interval transfer = clip(own, {transfer_start, at.end_us});
        if (transfer.length_us() > 0) stream.transfer_us += transfer.length_us();
        const Interval wait = clip(own, {at.start_us, transfer_start});
        if (wait.length_us() > 0) stream.idle.add(IdleCause::other_rank, wait.length_us());
        if (transfer.length_us() > 0) stream_transfers_.push_back({result_.streams.size(), transfer});
      } else if (own.length_us() > 0) {
        if (is_copy(info.kind)) {
          add(own, kCopy);
          stream.memcpy_us += own.length_us();
          stream_copies_.push_back({result_.streams.size(), own});
        } else if (info.kernel_class == KernelClass::communication) {
          // A communication kernel that no collective of the program describes: nothing tells waiting and
          // transfer apart.
          add(own, kTransfer);
          stream.transfer_us += own.length_us();
          stream_transfers_.push_back({result_.streams.size(), own});
        } else {
          add(own, kComputation);
          stream.computation_us += own.length_us();
          stream.kernels_us[static_cast<std::size_t>(info.kernel_class)] += own.length_us();
        }
      }
    }
    add_idle(stream.idle, IdleCause::rest, free_from, window_.end_us);
    for (std::size_t k = 0; k < stream.kernels_us.size(); ++k) result_.kernels_us[k] += stream.kernels_us[k];
    result_.streams.push_back(std::move(stream));
  }

  void sweep_thread(std::uint16_t lane) {
    ThreadBreakdown thread;
    thread.lane = lane;
    thread.name = rank_class_.lanes[lane].name;
    std::map<std::string, OpTime> by_op;
    double free_from = window_.start_us;
    for (const std::size_t task : flat_.lane_tasks(class_, lane)) {
      const Interval& at = times_.at(class_, task);
      if (at.start_us > free_from) add_idle(thread.idle, cause_before(task), free_from, at.start_us);
      const Interval own = clip({std::max(at.start_us, free_from), at.end_us}, window_);
      free_from = std::max(free_from, at.end_us);
      if (own.length_us() <= 0) continue;
      thread.busy_us += own.length_us();
      OpTime& op = by_op[std::string{outermost_op(flat_.info(class_, task).stack)}];
      op.time_us += own.length_us();
      ++op.tasks;
    }
    add_idle(thread.idle, IdleCause::rest, free_from, window_.end_us);
    for (auto& [name, op] : by_op) {
      op.name = name;
      thread.busy_by_op.push_back(std::move(op));
    }
    std::stable_sort(thread.busy_by_op.begin(), thread.busy_by_op.end(),
                     [](const OpTime& a, const OpTime& b) { return a.time_us > b.time_us; });
    result_.threads.push_back(std::move(thread));
  }

  // The outermost frame that says more than which step it is.
  std::string_view outermost_op(StackId stack) const {
    const Program& program = flat_.program();
    std::string_view outermost;
    for (StackId frame = stack; frame.valid(); frame = program.stacks.parent(frame)) {
      const std::string_view name = program.names.text(program.stacks.name(frame));
      if (!name.starts_with("ProfilerStep")) outermost = name;
    }
    return outermost;
  }

  void add(Interval time, Activity activity) {
    const Interval inside = clip(time, window_);
    if (inside.length_us() > 0) stretches_.push_back({inside, activity});
  }

  IntervalSet union_of(Activity activity) const {
    std::vector<Interval> intervals;
    for (const Stretch& s : stretches_) {
      if (s.activity == activity) intervals.push_back(s.time);
    }
    return IntervalSet{std::move(intervals)};
  }

  void sweep_rank() {
    // Every part is what is left of an activity after all activities before it.
    const IntervalSet computation = union_of(kComputation);
    const IntervalSet transfer = union_of(kTransfer);
    const IntervalSet waiting = union_of(kCollectiveWait);
    const IntervalSet copies = union_of(kCopy);
    const IntervalSet exposed_transfer = transfer.minus(computation);
    const IntervalSet exposed_copies = copies.minus(computation).minus(transfer);
    const IntervalSet bare_waiting = waiting.minus(computation).minus(transfer).minus(copies);
    result_.computation_us = computation.total_us();
    result_.transfer_us = transfer.total_us();
    result_.collective_wait_us = waiting.total_us();
    result_.exposed_comm_us = exposed_transfer.total_us();
    result_.exposed_memcpy_us = exposed_copies.total_us();
    result_.overlap_us = result_.transfer_us - result_.exposed_comm_us;
    result_.gpu_active_us = result_.computation_us + result_.exposed_comm_us + result_.exposed_memcpy_us;
    result_.idle.add(IdleCause::other_rank, bare_waiting.total_us());

    std::vector<Interval> busy;
    for (const Stretch& s : stretches_) busy.push_back(s.time);
    const IntervalSet nothing = IntervalSet{{window_}}.minus(IntervalSet{std::move(busy)});
    std::sort(starts_.begin(), starts_.end());
    for (const Interval& gap : nothing.intervals()) {
      // Work of no length may start inside a gap: the gap counts for what ends it.
      const auto next =
          std::lower_bound(starts_.begin(), starts_.end(), std::pair{gap.end_us, std::size_t{0}});
      const bool has_next = next != starts_.end() && gap.end_us < window_.end_us;
      result_.idle.add(has_next ? cause_before(next->second) : IdleCause::rest, gap.length_us());
    }

    for (const auto& [stream, time] : stream_transfers_) {
      result_.streams[stream].exposed_comm_us += time.length_us() - computation.covered_us(time);
    }
    for (const auto& [stream, time] : stream_copies_) {
      result_.streams[stream].exposed_memcpy_us += time.length_us() - computation.covered_us(time);
    }
  }

  struct OnStream {
    std::size_t stream;  // position in result_.streams
    Interval time;
  };

  const FlatProgram& flat_;
  const TaskTimes& times_;
  const Costs& costs_;
  RankClassId class_;
  Interval window_;
  double rank_start_us_;
  const std::vector<double>& transfer_start_us_;
  const RankClass& rank_class_;
  RankBreakdown result_;
  std::vector<Stretch> stretches_;
  std::vector<std::pair<double, std::size_t>> starts_;  // of GPU tasks: start and flat number
  std::vector<OnStream> stream_transfers_, stream_copies_;
};

}  // namespace

double IdleTime::total_us() const {
  double total = 0;
  for (const double time : by_cause_us) total += time;
  return total;
}

std::vector<RankBreakdown> break_down(const FlatProgram& flat, const TaskTimes& times, const Costs& costs,
                                      std::span<const Interval> windows,
                                      std::span<const double> rank_start_us) {
  const Program& program = flat.program();
  // [class][flat task] for collective tasks: when waiting ends.
  std::vector<std::vector<double>> transfer_start(flat.class_count());
  for (std::size_t c = 0; c < flat.class_count(); ++c) {
    const std::span<const Interval> of_class = times.of(RankClassId{c});
    transfer_start[c].reserve(of_class.size());
    for (const Interval& interval : of_class) transfer_start[c].push_back(interval.start_us);
  }
  for (std::size_t i = 0; i < program.collectives().size(); ++i) {
    const std::vector<CollectiveStretch> stretches = collective_stretches(flat, times, CollectiveId{i});
    const Collective& collective = program.collectives()[i];
    for (std::size_t m = 0; m < stretches.size(); ++m) {
      const CollectiveMember& member = collective.members[m];
      const std::size_t task = flat.flat(
          {.rank_class = member.rank_class, .rank = 0, .instance = member.instance, .task = member.task});
      transfer_start[member.rank_class.index()][task] = stretches[m].transfer_start_us;
    }
  }
  std::vector<RankBreakdown> ranks;
  for (std::size_t c = 0; c < flat.class_count(); ++c) {
    ranks.push_back(
        RankSweep{flat, times, costs, RankClassId{c}, windows[c], rank_start_us[c], transfer_start[c]}.run());
  }
  return ranks;
}

std::vector<Interval> whole_windows(const FlatProgram& flat, const TaskTimes& times,
                                    std::span<const double> rank_start_us) {
  std::vector<Interval> windows;
  for (std::size_t c = 0; c < flat.class_count(); ++c) {
    const double start = rank_start_us[c];
    windows.push_back({start, std::max(start, times.end_us(RankClassId{c}, start))});
  }
  return windows;
}

}  // namespace stepcast
