#include "lab/simulated_trace.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <optional>
#include <unordered_map>

namespace stepcast {
namespace {

constexpr std::uint32_t kNoEvent = 0xffffffff;

// Maps recorded to simulated time on one thread: exact at ends of tasks, linear in between.
class ThreadClock {
 public:
  // Tasks must be added in lane order. `instant_call`: a call without recorded length.
  void add(double recorded_us, double simulated_us, bool instant_call) {
    points_.push_back({recorded_us, simulated_us, instant_call});
  }
  [[nodiscard]] bool empty() const { return points_.empty(); }

  // Several tasks may meet at one recorded time. An op that begins there comes after all tasks that ended and before calls
  // without length, which are taken to be inside the op. An op that ends there comes after all of them.
  [[nodiscard]] double begin(double recorded_us) const {
    const auto [first, last] = meeting(recorded_us);
    if (first == last) return between(last, recorded_us);
    const Point* best = nullptr;
    for (auto p = first; p != last; ++p)
      if (!p->instant_call) best = &*p;
    return best != nullptr ? best->simulated_us : first->simulated_us;
  }
  [[nodiscard]] double end(double recorded_us) const {
    const auto [first, last] = meeting(recorded_us);
    return first == last ? between(last, recorded_us) : std::prev(last)->simulated_us;
  }

 private:
  struct Point {
    double recorded_us, simulated_us;
    bool instant_call;
  };
  using Position = std::vector<Point>::const_iterator;

  [[nodiscard]] std::pair<Position, Position> meeting(double recorded_us) const {
    constexpr double kSame = 1e-4;  // a tenth of the clock resolution of 1 ns
    const auto first = std::partition_point(
        points_.begin(), points_.end(), [&](const Point& p) { return p.recorded_us < recorded_us - kSame; });
    const auto last = std::partition_point(
        first, points_.end(), [&](const Point& p) { return p.recorded_us <= recorded_us + kSame; });
    return {first, last};
  }
  [[nodiscard]] double between(Position next, double recorded_us) const {
    if (next == points_.begin())
      return points_.front().simulated_us + (recorded_us - points_.front().recorded_us);
    if (next == points_.end())
      return points_.back().simulated_us + (recorded_us - points_.back().recorded_us);
    const Point &a = *std::prev(next), &b = *next;
    const double share = (recorded_us - a.recorded_us) / (b.recorded_us - a.recorded_us);
    return a.simulated_us + share * (b.simulated_us - a.simulated_us);
  }

  std::vector<Point> points_;
};

template <class Event>
std::vector<std::uint32_t> sort_events(std::vector<Event>& events) {
  std::vector<std::uint32_t> order(events.size());
  std::iota(order.begin(), order.end(), 0u);
  std::ranges::stable_sort(order, [&](std::uint32_t a, std::uint32_t b) {
    return events[a].start != events[b].start ? events[a].start < events[b].start
                                              : events[a].duration > events[b].duration;
  });
  std::vector<Event> sorted;
  sorted.reserve(events.size());
  std::vector<std::uint32_t> moved(events.size());
  for (std::uint32_t i = 0; i < order.size(); ++i) {
    sorted.push_back(events[order[i]]);
    moved[order[i]] = i;
  }
  events = std::move(sorted);
  return moved;
}

// The events of a rank at simulated times.
class MovedTrace {
 public:
  MovedTrace(const RecordedRank& original, Interval recorded_step_us, Interval simulated_step_us,
             Nanoseconds origin)
      : original_(original),
        recorded_step_us_(recorded_step_us),
        simulated_step_us_(simulated_step_us),
        origin_(origin),
        clocks_(original.threads.size()) {}

  // Reads the tasks of the block, which are in lane order for each lane.
  void read_tasks(const Block& block, const std::vector<Interval>& measured,
                  const std::vector<Interval>& simulated) {
    for (std::size_t t = 0; t < measured.size(); ++t) {
      const TaskInfo& info = block.tasks()[t];
      if (is_gpu_work(info.kind)) {
        gpu_times_[info.recorded_event] = simulated[t];
        continue;
      }
      const auto thread = static_cast<std::size_t>(block.lanes()[block.lane_codes()[t]].recorded);
      if (block.lane_codes()[t] == 0) main_thread_ = thread;
      if (!main_thread_) main_thread_ = thread;
      bool instant = false;
      if (info.recorded_event != kNoEvent) {
        instant = original_.runtime_calls[info.recorded_event].duration.count() == 0;
        const auto [it, fresh] = call_times_.emplace(info.recorded_event, simulated[t]);
        if (!fresh)
          it->second = {std::min(it->second.start_us, simulated[t].start_us),
                        std::max(it->second.end_us, simulated[t].end_us)};
      }
      clocks_[thread].add(measured[t].start_us, simulated[t].start_us, instant);
      clocks_[thread].add(measured[t].end_us, simulated[t].end_us, instant);
    }
  }

  void move_operators(RecordedRank& rank) const {
    for (CpuOp& op : rank.cpu_ops) {
      const double start = recorded_us(op.start), end = recorded_us(op.end());
      const ThreadClock* clock = clock_of(op.thread);
      const bool before = start < recorded_step_us_.start_us, after = start >= recorded_step_us_.end_us;
      const double new_start = before || after || clock == nullptr ? outside(start) : clock->begin(start);
      const double new_end =
          after || clock == nullptr || end < recorded_step_us_.start_us ? outside(end) : clock->end(end);
      place(op, new_start, std::max(new_start, new_end));
    }
    sort_events(rank.cpu_ops);
  }

  void move_calls(RecordedRank& rank) const {
    for (std::size_t i = 0; i < rank.runtime_calls.size(); ++i) {
      RuntimeCall& call = rank.runtime_calls[i];
      const double start = recorded_us(call.start), end = recorded_us(call.end());
      const bool in_step = start >= recorded_step_us_.start_us && start <= recorded_step_us_.end_us;
      if (const auto it = call_times_.find(static_cast<std::uint32_t>(i)); it != call_times_.end())
        place(call, it->second.start_us, it->second.end_us);
      else if (const ThreadClock* clock = clock_of(call.thread); in_step && clock != nullptr)
        place(call, clock->begin(start), clock->end(end));
      else
        place(call, outside(start), outside(start) + (end - start));
    }
    std::unordered_map<std::int64_t, const RuntimeCall*> call_of_correlation;
    for (const RuntimeCall& call : rank.runtime_calls) call_of_correlation[call.correlation] = &call;
    std::vector<StreamSync> syncs;
    for (StreamSync sync : rank.stream_syncs) {
      const auto it = call_of_correlation.find(sync.correlation);
      if (it == call_of_correlation.end()) continue;
      sync.start = it->second->start;
      sync.duration = it->second->duration;
      syncs.push_back(sync);
    }
    rank.stream_syncs = std::move(syncs);
    sort_events(rank.stream_syncs);
    sort_events(rank.runtime_calls);
  }

  // Moves the simulated GPU work; other work is left out.
  void move_gpu_work(SimulatedTrace& result) const {
    std::vector<GpuOp> gpu_ops;
    result.gpu_op.assign(original_.gpu_ops.size(), kNoEvent);
    for (std::uint32_t i = 0; i < original_.gpu_ops.size(); ++i) {
      const auto it = gpu_times_.find(i);
      if (it == gpu_times_.end()) continue;
      GpuOp op = original_.gpu_ops[i];
      place(op, it->second.start_us, it->second.end_us);
      result.gpu_op[i] = static_cast<std::uint32_t>(gpu_ops.size());
      gpu_ops.push_back(op);
    }
    const std::vector<std::uint32_t> moved = sort_events(gpu_ops);
    for (std::uint32_t& i : result.gpu_op)
      if (i != kNoEvent) i = moved[i];
    result.recorded.gpu_ops = std::move(gpu_ops);
  }

 private:
  [[nodiscard]] double recorded_us(Nanoseconds t) const {
    return static_cast<double>((t - origin_).count()) * 1e-3;
  }
  [[nodiscard]] Nanoseconds at(double us) const { return origin_ + Nanoseconds{std::llround(us * 1000)}; }
  template <class Event>
  void place(Event& event, double start_us, double end_us) const {
    event.start = at(start_us);
    event.duration = std::max(Nanoseconds{0}, at(end_us) - event.start);
  }
  // A time outside of the step, at the recorded distance from it.
  [[nodiscard]] double outside(double us) const {
    return us < recorded_step_us_.start_us ? us - recorded_step_us_.start_us + simulated_step_us_.start_us
                                           : us - recorded_step_us_.end_us + simulated_step_us_.end_us;
  }
  [[nodiscard]] const ThreadClock* clock_of(ThreadId thread) const {
    if (thread.valid() && !clocks_[thread.index()].empty()) return &clocks_[thread.index()];
    return main_thread_ ? &clocks_[*main_thread_] : nullptr;
  }

  const RecordedRank& original_;
  Interval recorded_step_us_, simulated_step_us_;
  Nanoseconds origin_;
  std::vector<ThreadClock> clocks_;
  std::optional<std::size_t> main_thread_;
  std::unordered_map<std::uint32_t, Interval> call_times_, gpu_times_;  // [recorded event]
};

}  // namespace

Nanoseconds clock_origin(const RecordedRank& original, const Block& block,
                         const std::vector<Interval>& measured) {
  // GPU work keeps its recorded time; calls may have moved slightly if recorded neighbours overlap.
  for (std::size_t t = 0; t < measured.size(); ++t) {
    const TaskInfo& info = block.tasks()[t];
    if (is_gpu_work(info.kind))
      return original.gpu_ops[info.recorded_event].start -
             Nanoseconds{std::llround(measured[t].start_us * 1000)};
  }
  for (std::size_t t = 0; t < measured.size(); ++t) {
    const TaskInfo& info = block.tasks()[t];
    if (info.recorded_event != kNoEvent)
      return original.runtime_calls[info.recorded_event].start -
             Nanoseconds{std::llround(measured[t].start_us * 1000)};
  }
  return Nanoseconds{};
}

SimulatedTrace simulated_trace(const RecordedRank& original, const Block& block,
                               const std::vector<Interval>& measured, const std::vector<Interval>& simulated,
                               Interval recorded_step_us, double simulated_step_start_us,
                               double simulated_step_end_us) {
  MovedTrace moved{original,
                   recorded_step_us,
                   {simulated_step_start_us, simulated_step_end_us},
                   clock_origin(original, block, measured)};
  moved.read_tasks(block, measured, simulated);
  SimulatedTrace result{.recorded = original};
  moved.move_operators(result.recorded);
  moved.move_calls(result.recorded);
  moved.move_gpu_work(result);
  return result;
}

}  // namespace stepcast
