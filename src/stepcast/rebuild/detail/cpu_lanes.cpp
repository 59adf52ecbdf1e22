// Cuts the CPU threads of a step into tasks and finds where they wait. A thread becomes a contiguous sequence
// of tasks; idle stretches are then removed and replaced by hand-off edges, so that a replay with faster GPUs
// or CPUs does not keep recorded idle time. A second pass finds the GPU work for which synchronising calls
// wait.
#include "stepcast/rebuild/detail/cpu_lanes.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <string_view>
#include <unordered_map>

#include "stepcast/rebuild/detail/gpu_waits.h"
#include "stepcast/rebuild/detail/item.h"

namespace stepcast::detail {
namespace {

// Start or end of an operator on a thread.
struct Boundary {
  double time_us;
  std::int32_t op;
  bool begins;
};

// False for annotations, steps and kNone.
bool is_framework_op(const RankGraph& g, std::int32_t op) {
  return op != kNone && item(g.recorded->cpu_ops, op).kind == CpuOp::Kind::op;
}

// Operators of a thread that overlap the window.
std::vector<std::int32_t> ops_of_window(const RankGraph& g, std::size_t thread) {
  const auto at = [&](double time_us) { return g.origin + Nanoseconds{std::llround(time_us * 1e3)}; };
  return g.index->ops_in(thread, at(g.window.start_us), at(g.window.end_us));
}

// Where operators of a thread start and end inside the window, in the order in which the ends take effect.
// `lane_end_us` is raised to the last of them.
std::vector<Boundary> boundaries_of(const RankGraph& g, std::span<const std::int32_t> ops, bool is_main,
                                    double& lane_end_us) {
  const RecordedRank& r = *g.recorded;
  const double first = g.window.start_us, last = g.window.end_us;
  std::vector<Boundary> boundaries;
  for (const std::int32_t i : ops) {
    const CpuOp& op = item(r.cpu_ops, i);
    const double begin = g.us(op.start);
    double end = g.us(op.end());
    if (begin >= last || end <= first) continue;
    if (is_main) end = std::min(end, last);
    if (begin >= first) boundaries.push_back({begin, i, true});
    boundaries.push_back({end, i, false});
    lane_end_us = std::max(lane_end_us, end);
  }
  // At the same time, ends come before starts, except that an operator of zero length starts before it ends.
  // Inner operators end first and start last.
  std::ranges::stable_sort(boundaries, [&](const Boundary& a, const Boundary& b) {
    if (a.time_us != b.time_us) return a.time_us < b.time_us;
    const auto instant = [&](const Boundary& x) { return item(r.cpu_ops, x.op).duration.count() == 0; };
    if (a.op == b.op) return a.begins;
    if (a.begins != b.begins && !instant(a) && !instant(b)) return !a.begins;
    return false;
  });
  return boundaries;
}

// The raw tasks of one lane: contiguous from the first to the last event, including idle stretches.
std::vector<CpuTask> cut(const RankGraph& g, std::int32_t thread, bool is_main) {
  const RecordedRank& r = *g.recorded;
  const double first = g.window.start_us;
  double lane_end = first;
  const std::vector<std::int32_t> ops = ops_of_window(g, static_cast<std::size_t>(thread));
  const std::vector<Boundary> boundaries = boundaries_of(g, ops, is_main, lane_end);

  std::vector<CpuTask> tasks;
  std::vector<std::int32_t> open;
  // Operators that were already open at the start of the window, outermost first.
  for (const std::int32_t i : ops) {
    const CpuOp& op = item(r.cpu_ops, i);
    if (g.us(op.start) < first && g.us(op.end()) > first) open.push_back(i);
  }
  double now = first;
  bool started = is_main;
  std::size_t b = 0;
  const auto segment_until = [&](double time) {
    if (!started) {
      now = time;
      started = true;
    }
    if (time > now) {
      tasks.push_back({TaskKind::cpu_segment, now, time, open.empty() ? kNone : open.back(), kNone});
      now = time;
    }
  };
  const auto pass_boundaries = [&](double until, bool inside_call) {
    for (; b < boundaries.size() && boundaries[b].time_us <= until; ++b) {
      // The end of an operator inside a call (due to rounding) takes effect after the call: calls are atomic.
      if (!inside_call) segment_until(std::max(boundaries[b].time_us, now));
      const std::int32_t op = boundaries[b].op;
      if (boundaries[b].begins)
        open.push_back(op);
      else if (const auto at = std::find(open.rbegin(), open.rend(), op); at != open.rend())
        open.erase(std::next(at).base());  // usually the innermost
    }
  };
  for (const std::int32_t c : item(g.calls_of_thread, thread)) {
    const Call& call = item(g.calls, c);
    pass_boundaries(call.start_us, false);
    segment_until(std::max(call.start_us, now));
    const double end = std::max(call.end_us, now);
    tasks.push_back({TaskKind::cpu_call, now, is_main ? std::max(now, end) : end, call.op, c});
    now = end;
    pass_boundaries(std::max(call.start_us, std::min(call.end_us, now) - 1e-9), true);
  }
  pass_boundaries(lane_end, false);
  return tasks;
}

// The end of the last top-level operator of a lane at or before a time: the last task inside that operator,
// and its end.
struct Anchor {
  std::int32_t task = kNone;
  double end_us = 0;
};
// Binary search for the time, then backwards until a task ends its top-level operator.
Anchor last_activity_end(const RankGraph& g, const std::vector<CpuTask>& tasks, double time_us) {
  Anchor anchor;
  const auto end =
      std::partition_point(tasks.begin(), tasks.end(), [&](const CpuTask& t) { return t.end_us <= time_us; });
  for (auto it = end; it != tasks.begin();) {
    --it;
    // A top-level operator ends with this task if the next task is outside of operators or in another
    // top-level one.
    const auto next = std::next(it);
    const auto root = [&](std::int32_t op) { return g.index->context_of(op).root; };
    if (root(it->op) == kNone) continue;
    if (next != tasks.end() && root(next->op) == root(it->op)) continue;
    anchor.task = static_cast<std::int32_t>(it - tasks.begin());
    anchor.end_us = it->end_us;
    break;
  }
  return anchor;
}

// Position of the last task that ends at or before `time_us`; kNone if there is none.
std::int32_t last_task_ending_by(const std::vector<CpuTask>& tasks, double time_us) {
  const auto end =
      std::partition_point(tasks.begin(), tasks.end(), [&](const CpuTask& t) { return t.end_us <= time_us; });
  return end == tasks.begin() ? kNone : static_cast<std::int32_t>(end - tasks.begin()) - 1;
}

// True if the main thread was active during a stretch in which another thread has no open operator. The other
// thread was then idle until the main thread woke it. If the main thread waits the whole time, the stretch is
// work of the other thread.
bool woken_by_main(const std::vector<CpuTask>& main, const CpuTask& stretch) {
  const std::int32_t last = last_task_ending_by(main, stretch.end_us);
  if (last == kNone) return true;
  const CpuTask& t = item(main, last);
  return t.end_us > stretch.start_us;
}

void add_unless_there(std::vector<std::int32_t>& list, std::int32_t item) {
  if (item != kNone && std::ranges::find(list, item) == list.end()) list.push_back(item);
}

// For work with lost launches: the work that ended last while the call ran. The file does not show for which
// stream the call waited.
std::int32_t ended_meanwhile(const RankGraph& g, const Call& call) {
  std::int32_t last = kNone;
  for (std::size_t i = 0; i < g.gpu.size(); ++i) {
    const GpuWork& w = g.gpu[i];
    if (!w.launch_is_lost() || w.end_us <= call.start_us || w.end_us > call.end_us + kClockToleranceUs)
      continue;
    if (last == kNone || w.end_us > item(g.gpu, last).end_us) last = static_cast<std::int32_t>(i);
  }
  return last;
}

// Finds the calls that wait for GPU work, and for each the last work that it waits for. Stream and event are
// recorded or concluded from the order of the calls on the thread.
void find_wait_sources(const RankGraph& g, CpuLanes& lanes) {
  const auto ended_work = [&](std::int32_t stream, double before_us, double end_us) {
    return last_ended(g, last_launched_before(g, stream, before_us), end_us + kClockToleranceUs);
  };
  const bool any_lost = std::ranges::any_of(g.gpu, &GpuWork::launch_is_lost);
  std::unordered_multimap<std::int64_t, std::int64_t> syncs;  // correlation of the call -> stream
  for (const StreamSync& sync : g.recorded->stream_syncs)
    if (sync.kind == StreamSync::Kind::stream_sync && sync.correlation >= 0)
      syncs.emplace(sync.correlation, sync.stream);
  for (const std::int32_t thread : lanes.threads) {
    std::int32_t last_stream = kNone;
    std::int32_t last_before_record = kNone, last_launch = kNone;
    for (const std::int32_t c : item(g.calls_of_thread, thread)) {
      const Call& call = item(g.calls, c);
      CpuWait wait{.call = c};
      switch (call.kind) {
        case CallKind::launch: {
          last_launch = call.gpu.back();
          if (!item(g.gpu, last_launch).communication) last_stream = item(g.gpu, last_launch).stream;
          if (call.blocking_copy) {
            wait.kind = WaitKind::blocking_copy;
            wait.sources = call.gpu;
          }
          break;
        }
        case CallKind::event_record: last_before_record = last_launch; break;
        case CallKind::stream_sync: {
          wait.kind = WaitKind::stream_sync;
          std::int32_t stream = last_stream;
          const std::int64_t correlation = g.recorded->runtime_calls[call.recorded].correlation;
          wait.inferred = true;
          const auto [first_sync, last_sync] = syncs.equal_range(correlation);
          for (auto sync = first_sync; sync != last_sync; ++sync) {
            for (std::size_t s = 0; s < g.streams.size(); ++s) {
              if (g.streams[s].number == sync->second) {
                stream = static_cast<std::int32_t>(s);
                wait.inferred = false;
              }
            }
          }
          if (stream != kNone) add_unless_there(wait.sources, ended_work(stream, call.start_us, call.end_us));
          break;
        }
        case CallKind::device_sync:
          wait.kind = WaitKind::device_sync;
          for (std::size_t s = 0; s < g.streams.size(); ++s)
            add_unless_there(wait.sources,
                             ended_work(static_cast<std::int32_t>(s), call.start_us, call.end_us));
          break;
        case CallKind::event_sync:
          wait.kind = WaitKind::event_sync;
          wait.inferred = true;
          if (last_before_record != kNone)
            add_unless_there(wait.sources,
                             last_ended(g, last_before_record, call.end_us + kClockToleranceUs));
          break;
        default: break;
      }
      const bool waits_for_unknown = wait.kind == WaitKind::stream_sync || wait.kind == WaitKind::event_sync;
      if (waits_for_unknown && wait.sources.empty() && any_lost)
        add_unless_there(wait.sources, ended_meanwhile(g, call));
      if (wait.kind != WaitKind::none) lanes.waits.push_back(std::move(wait));
    }
  }
}

// Selects the threads that do something in the window, the main thread first. Calls of threads that only poll
// are dropped.
void choose_threads(const RankGraph& g, CpuLanes& lanes) {
  const std::size_t thread_count = g.recorded->threads.size();
  std::vector<bool> has_work(thread_count, false);
  for (std::size_t t = 0; t < thread_count; ++t) {
    const std::vector<std::int32_t> ops = ops_of_window(g, t);
    has_work[t] = std::ranges::any_of(
        ops, [&](std::int32_t i) { return g.us(item(g.recorded->cpu_ops, i).end()) > g.window.start_us; });
  }
  for (const Call& c : g.calls)
    if (c.kind == CallKind::launch) has_work[c.thread] = true;
  if (g.window.main_thread != kNone) lanes.threads.push_back(g.window.main_thread);
  for (std::size_t t = 0; t < thread_count; ++t) {
    if (has_work[t] && static_cast<std::int32_t>(t) != g.window.main_thread)
      lanes.threads.push_back(static_cast<std::int32_t>(t));
    if (!has_work[t]) lanes.dropped_polling_calls += g.calls_of_thread[t].size();
  }
}

// Removes idle stretches from the lanes. The event that ends a stretch becomes a hand-off.
class GapCutter {
 public:
  GapCutter(const RankGraph& g, CpuLanes& lanes) : g_(g), lanes_(lanes) {
    for (const std::int32_t t : lanes.threads) raw_.push_back(cut(g, t, t == g.window.main_thread));
    lanes_.tasks.resize(raw_.size());
  }

  void run() {
    for (std::int32_t lane = 0; lane < next_position(raw_); ++lane) cut_lane(lane);
    for (const Open& wake : wakes_) add_wake(wake);
    for (const Open& join : joins_) add_join(join);
  }

 private:
  // A gap, until the thread is found that ended it.
  struct Open {
    std::int32_t lane, task;  // the task after the gap, in the new numbering
    double time_us;
  };

  // Copies the tasks of a lane without its gaps.
  void cut_lane(std::int32_t lane) {
    const bool is_main = lane == 0 && lanes_.threads[0] == g_.window.main_thread;
    const std::vector<CpuTask>& raw = item(raw_, lane);
    std::vector<CpuTask>& out = item(lanes_.tasks, lane);
    if (!is_main && !raw.empty()) wakes_.push_back({lane, 0, raw.front().start_us});
    for (std::size_t i = 0; i < raw.size(); ++i) {
      const CpuTask& t = raw[i];
      const bool gap =
          t.kind == TaskKind::cpu_segment && t.end_us - t.start_us >= kIdleGapUs && i + 1 < raw.size();
      if (gap && !is_main && t.op == kNone && woken_by_main(raw_[0], t)) {
        wakes_.push_back({lane, next_position(out), t.end_us});
        continue;
      }
      out.push_back(t);
      if (gap && is_main && !is_framework_op(g_, t.op) && awaits_another_thread(lane, t)) {
        out.back().end_us = t.start_us + kGapBaseUs;
        joins_.push_back({lane, next_position(out), t.end_us});
      }
    }
  }

  // True if another thread is active during the gap, so that the main thread waits for it.
  [[nodiscard]] bool awaits_another_thread(std::int32_t lane, const CpuTask& gap) const {
    for (std::int32_t other = 0; other < next_position(raw_); ++other) {
      if (other == lane) continue;
      const Anchor a = last_activity_end(g_, item(raw_, other), gap.end_us);
      if (a.task != kNone && a.end_us > gap.start_us + kGapBaseUs) return true;
    }
    return false;
  }

  // A thread starts after a gap: the last task of the main thread that ended before woke it.
  void add_wake(const Open& wake) {
    Handoff h{.kind = Handoff::Kind::wake};
    h.to_thread = wake.lane;
    h.to_task = wake.task;
    if (!lanes_.tasks.empty()) h.from_task = last_task_ending_by(lanes_.tasks[0], wake.time_us);
    if (h.from_task != kNone) {
      h.from_thread = 0;
      h.delay_us = wake.time_us - item(lanes_.tasks[0], h.from_task).end_us;
    } else {
      h.delay_us = wake.time_us - g_.window.start_us;
    }
    lanes_.handoffs.push_back(h);
  }

  // The main thread continues after a gap: the thread with the operator that ended last is the one it waited
  // for.
  void add_join(const Open& join) {
    Handoff h{.to_thread = join.lane, .to_task = join.task};
    double best = -1;
    for (std::int32_t other = 0; other < next_position(lanes_.tasks); ++other) {
      if (other == join.lane) continue;
      const Anchor a = last_activity_end(g_, item(lanes_.tasks, other), join.time_us);
      if (a.task != kNone && a.end_us > best) {
        best = a.end_us;
        h.from_thread = other;
        h.from_task = a.task;
      }
    }
    if (h.from_task == kNone) return;
    h.delay_us = join.time_us - best;
    const CpuTask& next = item(item(lanes_.tasks, join.lane), join.task);
    const bool evaluates =
        next.op != kNone &&
        g_.recorded->names.text(item(g_.recorded->cpu_ops, next.op).name).find("evaluate_function") !=
            std::string_view::npos;
    h.kind = evaluates ? Handoff::Kind::evaluate : Handoff::Kind::join;
    lanes_.handoffs.push_back(h);
  }

  const RankGraph& g_;
  CpuLanes& lanes_;
  std::vector<std::vector<CpuTask>> raw_;  // [lane] including gaps
  std::vector<Open> wakes_, joins_;
};

}  // namespace

CpuLanes cut_cpu_lanes(const RankGraph& g) {
  CpuLanes lanes;
  choose_threads(g, lanes);
  GapCutter{g, lanes}.run();
  find_wait_sources(g, lanes);
  // All ranks are in memory at the same time.
  for (std::vector<CpuTask>& tasks : lanes.tasks) tasks.shrink_to_fit();
  return lanes;
}

}  // namespace stepcast::detail
