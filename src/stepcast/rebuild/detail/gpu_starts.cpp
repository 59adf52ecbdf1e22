// Determines when GPU work of a rank may start: by its launch, by its stream, and, for the nodes of a CUDA
// graph, by the nodes before them. The result also shows how late work started compared with everything that
// is known to delay it, which is the quality measure of the rebuilt graph.
#include "stepcast/rebuild/detail/gpu_starts.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

namespace stepcast::detail {
namespace {

// A recorded launch delay or stream gap may replace its constant if it is within this many microseconds
// (RebuildOptions::own_delays).
constexpr double kOwnDelayWithinUs = 3;

// The edge from the launching call to its work.
LaunchEdge launch_edge(const RankGraph& g, std::size_t i, const Constants& constants,
                       const std::vector<std::vector<std::int32_t>>& into, bool own_delays) {
  const GpuWork& w = g.gpu[i];
  const Call& c = g.calls[static_cast<std::size_t>(w.call)];
  LaunchEdge edge;
  if (c.blocking_copy) {
    edge.from_start = true;
    edge.delay = launch_class(DelayKind::inside_launch, g, w);
    edge.delay_us = constants.value_us(edge.delay);
  } else if (starts_inside_call(g, w)) {
    // The offset of the start inside the call depends on the call (staging of a large copy, a slow first
    // launch), so the recorded offset is kept.
    edge.from_start = true;
    edge.kept = true;
    edge.delay = launch_class(DelayKind::inside_launch, g, w);
    edge.delay_us = std::max(0.0, w.start_us - c.start_us);
    if (!launched_clean(g, i, into)) edge.delay_us = std::min(edge.delay_us, constants.value_us(edge.delay));
  } else {
    edge.delay = launch_class(DelayKind::launch, g, w);
    edge.delay_us = constants.value_us(edge.delay);
    const double own = w.start_us - c.end_us;
    if (own_delays && launched_clean(g, i, into) && std::abs(own - edge.delay_us) <= kOwnDelayWithinUs) {
      edge.delay_us = own;
      edge.kept = true;
    }
  }
  return edge;
}

// The edge for work that does not wait for the end of its predecessor: it keeps its recorded distance. If the
// predecessor still ran, the distance is from its start, as a share of its length: work that starts while the
// last blocks of the predecessor run moves with its end.
OrderEdge beside_edge(const RankGraph& g, const GpuWork& w) {
  const GpuWork& previous = g.work(w.previous);
  OrderEdge edge{.from = w.previous, .from_start = overlaps(g, previous, w)};
  edge.delay_us = std::max(0.0, w.start_us - (edge.from_start ? previous.start_us : previous.end_us));
  edge.info = {EdgeOrigin::stream_order, /*inferred=*/false, /*kept=*/true,
               edge.from_start ? static_cast<float>(edge.delay_us / previous.length_us()) : 0};
  return edge;
}

// The edge for work with a launch that the file does not show: it follows its predecessor on the stream. A
// long gap was a launch that the stream waited for, so it counts as host time.
OrderEdge lost_launch_edge(const RankGraph& g, std::int32_t ahead, const GpuWork& w) {
  if (overlaps(g, g.work(ahead), w)) return beside_edge(g, w);
  OrderEdge edge{.from = ahead, .delay_us = std::max(0.0, w.start_us - g.work(ahead).end_us)};
  const bool waited = edge.delay_us > kLateUs;
  edge.info = {waited ? EdgeOrigin::launch : EdgeOrigin::stream_order, /*inferred=*/waited, /*kept=*/true, 0};
  if (waited) edge.delay = lost_launch_class();
  return edge;
}

// The edge for normal stream order, with the learned stream gap.
OrderEdge queue_edge(const RankGraph& g, std::int32_t ahead, const GpuWork& w, const Constants& constants,
                     bool own_delays) {
  OrderEdge edge{.from = ahead, .delay = gap_class(g.work(ahead), w)};
  edge.delay_us = constants.value_us(*edge.delay);
  const double own = w.start_us - g.work(ahead).end_us;
  if (own_delays && own >= 0 && own <= edge.delay_us + kOwnDelayWithinUs)
    edge.delay_us = std::min(edge.delay_us, own);
  edge.info = {EdgeOrigin::stream_order, false, false, 0};
  return edge;
}

// Orders the nodes of one CUDA graph launch: each node keeps its recorded distance to the node that ended
// last when it started, or to the start of the first node if none had ended.
void hold_nodes_of(const RankGraph& g, const Call& call, std::vector<GpuStart>& starts) {
  std::vector<std::int32_t> by_end = call.gpu;
  std::ranges::stable_sort(
      by_end, [&](std::int32_t a, std::int32_t b) { return g.work(a).end_us < g.work(b).end_us; });
  for (std::size_t k = 1; k < call.gpu.size(); ++k) {
    const std::int32_t i = call.gpu[k];
    const GpuWork& w = g.work(i);
    GpuStart& start = starts[static_cast<std::size_t>(i)];
    const bool behind_a_node = w.previous != kNone && g.work(w.previous).call == w.call;
    if (behind_a_node && overlaps(g, g.work(w.previous), w)) {
      start.order = beside_edge(g, w);
      continue;
    }
    auto ended = std::partition_point(by_end.begin(), by_end.end(), [&](std::int32_t other) {
      return g.work(other).end_us <= w.start_us + g.clock_step_us;
    });
    OrderEdge edge{.from = call.gpu.front(), .from_start = true};
    while (ended != by_end.begin()) {
      --ended;
      // Of nodes without length that start at the same time, only those before this one.
      if (*ended == i || g.work(*ended).start_us > w.start_us ||
          (g.work(*ended).start_us == w.start_us && *ended > i))
        continue;
      edge.from = *ended;
      edge.from_start = false;
      break;
    }
    const GpuWork& from = g.work(edge.from);
    edge.delay_us = std::max(0.0, w.start_us - (edge.from_start ? from.start_us : from.end_us));
    const bool same_stream = from.stream == w.stream;
    edge.info = {same_stream ? EdgeOrigin::stream_order : EdgeOrigin::event, /*inferred=*/!same_stream,
                 /*kept=*/true, 0};
    start.order = edge;
  }
}

// Idle time of one device, from the union of all its work.
class DeviceActivity {
 public:
  DeviceActivity(const RankGraph& g, std::int32_t device) {
    std::vector<Interval> all;
    for (const Stream& s : g.streams) {
      if (s.device != device) continue;
      for (const std::int32_t i : s.work) all.push_back({g.work(i).start_us, g.work(i).end_us});
    }
    std::ranges::sort(all, {}, &Interval::start_us);
    for (const Interval& x : all)
      if (!busy_.empty() && x.start_us <= busy_.back().end_us)
        busy_.back().end_us = std::max(busy_.back().end_us, x.end_us);
      else
        busy_.push_back(x);
  }
  // Microseconds of the stretch in which nothing runs on the device.
  [[nodiscard]] double idle_us(Interval stretch) const {
    double busy = 0;
    auto it = std::partition_point(busy_.begin(), busy_.end(),
                                   [&](const Interval& b) { return b.end_us <= stretch.start_us; });
    for (; it != busy_.end() && it->start_us < stretch.end_us; ++it)
      busy += std::min(it->end_us, stretch.end_us) - std::max(it->start_us, stretch.start_us);
    return std::max(0.0, stretch.length_us() - busy);
  }

 private:
  std::vector<Interval> busy_;
};

}  // namespace

// One pass per stream in order of start, then the later nodes of CUDA graph launches.
std::vector<GpuStart> gpu_starts(const RankGraph& g, const Constants& constants, bool own_delays) {
  const auto into = edges_into(g);
  std::vector<GpuStart> starts(g.gpu.size());
  for (const Stream& stream : g.streams) {
    std::int32_t behind = kNone;  // work of the stream so far that ends last
    for (const std::int32_t i : stream.work) {
      const GpuWork& w = g.work(i);
      GpuStart& start = starts[static_cast<std::size_t>(i)];
      const std::int32_t ahead = behind;
      if (behind == kNone || w.end_us >= g.work(behind).end_us) behind = i;
      if (w.call != kNone) {
        if (is_later_node(g, static_cast<std::size_t>(i))) continue;  // ordered below
        start.launch = launch_edge(g, static_cast<std::size_t>(i), constants, into, own_delays);
        if (ahead == kNone) continue;
        start.order = overlaps(g, g.work(ahead), w) ? beside_edge(g, w)
                                                    : queue_edge(g, ahead, w, constants, own_delays);
        continue;
      }
      if (w.launch_is_lost()) {
        if (ahead != kNone)
          start.order = lost_launch_edge(g, ahead, w);
        else
          start.offset_us = std::max(0.0, w.start_us - g.window.start_us);
        continue;
      }
      // Left over from before the window: the first one on its stream starts at its recorded offset, the
      // others follow at their recorded gaps, so that changed kernel times move them as a queue.
      if (ahead != kNone && g.work(ahead).call == kNone) {
        start.order = beside_edge(g, w);
        start.order->info.origin = EdgeOrigin::recorded_offset;
      } else {
        start.offset_us = std::max(0.0, w.start_us - g.window.start_us);
      }
    }
  }
  for (const Call& call : g.calls)
    if (call.gpu.size() > 1) hold_nodes_of(g, call, starts);
  return starts;
}

// The maximum over all edges into each piece of work.
std::vector<double> ready_times(const RankGraph& g, const Constants& constants,
                                const std::vector<GpuStart>& starts) {
  std::vector<double> ready(g.gpu.size(), -std::numeric_limits<double>::infinity());
  const auto hold = [&](std::size_t i, double until_us) { ready[i] = std::max(ready[i], until_us); };
  for (std::size_t i = 0; i < g.gpu.size(); ++i) {
    const GpuStart& start = starts[i];
    if (start.launch) {
      const Call& c = g.calls[static_cast<std::size_t>(g.gpu[i].call)];
      hold(i, (start.launch->from_start ? c.start_us : c.end_us) + start.launch->delay_us);
    }
    if (start.order) {
      const GpuWork& from = g.work(start.order->from);
      hold(i, (start.order->from_start ? from.start_us : from.end_us) + start.order->delay_us);
    }
    if (start.offset_us) hold(i, g.window.start_us + *start.offset_us);
  }
  for (const GpuEdge& e : g.gpu_edges) {
    const GpuWork& from = g.work(e.from);
    const double delay = e.info.origin == EdgeOrigin::device_busy
                             ? e.delay_us
                             : constants.value_us(event_class(from, g.work(e.to)));
    hold(static_cast<std::size_t>(e.to), (e.from_start ? from.start_us : from.end_us) + delay);
  }
  return ready;
}

void keep_starts_behind_unseen_work(const RankGraph& g, const std::vector<double>& ready_us,
                                    std::vector<GpuStart>& starts) {
  // Work from before the file has been running since the start of the file. A wait that is short compared
  // with that time belongs to the launch.
  constexpr double kShareWaited = 0.1;
  if (!g.begins_with_file) return;
  std::map<std::int32_t, double> first_end_us;  // [device] of work launched in the file
  for (const GpuWork& w : g.gpu) {
    if (w.call == kNone) continue;
    const auto [it, fresh] =
        first_end_us.emplace(g.streams[static_cast<std::size_t>(w.stream)].device, w.end_us);
    it->second = std::min(it->second, w.end_us);
  }
  for (const Stream& s : g.streams) {
    const auto first = static_cast<std::size_t>(s.work.front());
    const GpuWork& w = g.gpu[first];
    const bool late = w.call != kNone && w.start_us - ready_us[first] > kLateUs;
    if (late && ready_us[first] <= first_end_us.at(s.device) &&
        w.start_us - ready_us[first] > kShareWaited * (w.start_us - g.window.start_us))
      starts[first].offset_us = w.start_us - g.window.start_us;
  }
}

// late_us is the length of the union of all late intervals. Idle time counts only between queued work.
GpuLateness gpu_lateness(const RankGraph& g, const std::vector<double>& ready_us,
                         const std::vector<GpuStart>& starts) {
  GpuLateness lateness;
  std::vector<Interval> late;
  std::map<std::int32_t, DeviceActivity> activity;
  for (std::size_t i = 0; i < g.gpu.size(); ++i) {
    const GpuWork& w = g.gpu[i];
    if (w.call == kNone || w.start_us - ready_us[i] <= kLateUs) continue;
    ++lateness.n;
    late.push_back({ready_us[i], w.start_us});
    // Queued: it could have started directly after its predecessor.
    if (w.previous == kNone || !starts[i].launch) continue;
    const Call& c = g.calls[static_cast<std::size_t>(w.call)];
    const double launched =
        (starts[i].launch->from_start ? c.start_us : c.end_us) + starts[i].launch->delay_us;
    if (launched > g.work(w.previous).end_us) continue;
    const std::int32_t device = g.streams[static_cast<std::size_t>(w.stream)].device;
    const auto of_device = activity.try_emplace(device, g, device).first;
    const double idle = of_device->second.idle_us({ready_us[i], w.start_us});
    if (idle <= kLateUs) continue;
    ++lateness.idle_n;
    lateness.idle_between_queued_us += idle;
  }
  std::ranges::sort(late, {}, &Interval::start_us);
  double covered_until = -std::numeric_limits<double>::infinity();
  for (const Interval& x : late) {
    lateness.late_us += std::max(0.0, x.end_us - std::max(x.start_us, covered_until));
    covered_until = std::max(covered_until, x.end_us);
  }
  return lateness;
}

}  // namespace stepcast::detail
