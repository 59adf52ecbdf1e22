// Reconstructs dependencies between GPU streams. CUDA events make one stream wait for another, but a trace
// without cuda_sync records shows only the calls, and not which event or stream they refer to. The rules
// below follow the usage in PyTorch: record and wait in pairs, waits around collectives, and the final wait
// of DDP. Concluded edges are checked against recorded times.
#include "stepcast/rebuild/detail/gpu_waits.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>

namespace stepcast::detail {
namespace {

const Call& call(const RankGraph& g, std::int32_t i) { return g.calls[static_cast<std::size_t>(i)]; }

bool is_comm_launch(const RankGraph& g, const Call& c) {
  return !c.gpu.empty() && g.work(c.gpu.front()).communication;
}

// The first work on `stream` that is launched after `time_us`.
std::int32_t first_launched_after(const RankGraph& g, std::int32_t stream, double time_us) {
  const auto& list = g.streams[static_cast<std::size_t>(stream)].work;
  const auto it = std::partition_point(list.begin(), list.end(),
                                       [&](std::int32_t i) { return g.work(i).queued_us <= time_us; });
  return it == list.end() ? kNone : *it;
}

// Finds the waits of one rank. The constructor determines communication streams, the main stream and lookup
// tables.
class WaitFinder {
 public:
  explicit WaitFinder(RankGraph& graph) : g_(graph) {
    for (std::size_t s = 0; s < g_.streams.size(); ++s) {
      std::size_t n = 0;
      for (const std::int32_t i : g_.streams[s].work)
        if (g_.work(i).communication)
          comm_streams_.insert(static_cast<std::int32_t>(s));
        else
          ++n;
      if (n > most_work_ && !comm_streams_.contains(static_cast<std::int32_t>(s))) {
        most_work_ = n;
        main_stream_ = static_cast<std::int32_t>(s);
      }
    }
    for (const StreamSync& sync : g_.recorded->stream_syncs)
      if (sync.kind == StreamSync::Kind::stream_wait_event && sync.correlation >= 0)
        sync_of_correlation_[sync.correlation] = &sync;
    for (std::size_t i = 0; i < g_.calls.size(); ++i) {
      const std::int64_t correlation = g_.recorded->runtime_calls[g_.calls[i].recorded].correlation;
      if (correlation >= 0) call_of_correlation_[correlation] = static_cast<std::int32_t>(i);
    }
    index_sequences();
  }

  void run() {
    for (const auto& calls : g_.calls_of_thread) walk_thread(calls);
    launches_without_wait();
    tensor_edges();
  }

 private:
  // State of a thread while its calls are visited in order.
  struct ThreadState {
    std::int32_t current_stream = kNone;        // stream of the last launch that was not a collective
    std::vector<std::int32_t> used_streams;     // non-communication streams, most recently used at the end
    std::int32_t launch_before_record = kNone;  // last work launched before the last event record
    std::int32_t last_launch = kNone;
  };

  // Visits the calls of a thread in order and keeps the state that waits refer to.
  void walk_thread(const std::vector<std::int32_t>& calls) {
    ThreadState state;
    for (std::size_t k = 0; k < calls.size(); ++k) {
      const Call& c = call(g_, calls[k]);
      switch (c.kind) {
        case CallKind::launch: {
          const std::int32_t first = c.gpu.front();
          state.last_launch = first;
          const std::int32_t stream = g_.work(first).stream;
          if (!comm_streams_.contains(stream)) {
            state.current_stream = stream;
            std::erase(state.used_streams, stream);
            state.used_streams.push_back(stream);
          }
          break;
        }
        case CallKind::event_record:
          if (!c.in_library_annotation) state.launch_before_record = state.last_launch;
          break;
        case CallKind::stream_wait: wait(calls, k, state); break;
        default: break;
      }
    }
  }

  // Handles one cudaStreamWaitEvent. The cases are ordered by reliability: recorded event, waits inside the
  // collective library, waits around a collective, DDP's final wait, record and wait in pairs, and last the
  // previously used stream.
  void wait(const std::vector<std::int32_t>& calls, std::size_t k, const ThreadState& state) {
    const Call& c = call(g_, calls[k]);
    if (recorded_wait(c)) return;
    if (c.in_library_annotation) return;  // the collective library orders its own streams

    if (c.comm_op != kNone && launched_comm_before(calls, k, c.comm_op))
      return;  // the future of the collective itself
    if (c.comm_op != kNone) {
      const std::int32_t comm_launch = next_launch_of_comm_op(calls, k, c.comm_op);
      if (comm_launch != kNone) {  // the collective waits for the current stream
        const std::int32_t source_stream =
            state.current_stream != kNone ? state.current_stream : main_stream_;
        if (source_stream != kNone) {
          add(last_launched_before(g_, source_stream, c.start_us), comm_launch, EdgeOrigin::event,
              Contradicted::earlier);
          comm_with_wait_.insert(comm_launch);
        }
      } else {  // the wait twin of a collective: the stream of the next launch waits for it
        const std::int32_t target = next_work(calls, k, state);
        if (target == kNone) return;
        const std::int32_t exact = collective_of_wait(c);
        if (exact != kNone)
          add(exact, target, EdgeOrigin::event, Contradicted::drop, /*inferred=*/false);
        else
          wait_for_collectives(c, target);
      }
      return;
    }
    const bool on_main = static_cast<std::int32_t>(c.thread) == g_.window.main_thread;
    if (c.op == kNone && !on_main && !comm_streams_.empty()) {  // DDP's finalisation at the end of backward
      const std::int32_t stream = state.current_stream != kNone ? state.current_stream : main_stream_;
      const std::int32_t target = stream == kNone ? kNone : first_launched_after(g_, stream, c.start_us);
      if (target != kNone) wait_for_collectives(c, target);
      return;
    }
    if (state.launch_before_record !=
        kNone) {  // the event was recorded after the last launch before the record
      const std::int32_t source = state.launch_before_record;
      const std::int32_t target = next_launch_on_other_stream(calls, k, g_.work(source).stream);
      if (target != kNone) add(source, target, EdgeOrigin::event, Contradicted::earlier);
      return;
    }
    // Without an event record, the stream of the next launch is assumed to wait for the stream that the
    // thread used before.
    const std::int32_t target = next_launch(calls, k);
    if (target == kNone) return;
    for (auto it = state.used_streams.rbegin(); it != state.used_streams.rend(); ++it) {
      if (*it == g_.work(target).stream) continue;
      add(last_launched_before(g_, *it, c.start_us), target, EdgeOrigin::event, Contradicted::drop);
      return;
    }
  }

  // True if the trace records the event of this wait; the edge is then exact.
  bool recorded_wait(const Call& c) {
    const std::int64_t correlation = g_.recorded->runtime_calls[c.recorded].correlation;
    const auto it = sync_of_correlation_.find(correlation);
    if (it == sync_of_correlation_.end()) return false;
    const StreamSync& sync = *it->second;
    const std::int32_t waiting = stream_numbered(sync.stream);
    const std::int32_t awaited = stream_numbered(sync.wait_on_stream);
    if (waiting == kNone || awaited == kNone) return true;  // one of them has no work, so there is no effect
    double recorded_at = c.start_us;
    if (const auto r = call_of_correlation_.find(sync.wait_on_event_record_correlation);
        r != call_of_correlation_.end())
      recorded_at = call(g_, r->second).start_us;
    const std::int32_t source = last_launched_before(g_, awaited, recorded_at);
    const std::int32_t target = first_launched_after(g_, waiting, c.start_us);
    if (source != kNone && target != kNone && waiting != awaited)
      add(source, target, EdgeOrigin::event, Contradicted::keep, /*inferred=*/false);
    return true;
  }

  [[nodiscard]] std::int32_t stream_numbered(std::int64_t number) const {
    for (std::size_t s = 0; s < g_.streams.size(); ++s)
      if (g_.streams[s].number == number) return static_cast<std::int32_t>(s);
    return kNone;
  }

  // The target waits for the last work on each communication stream.
  void wait_for_collectives(const Call& c, std::int32_t target) {
    for (const std::int32_t stream : comm_streams_)
      add(last_launched_before(g_, stream, c.start_us), target, EdgeOrigin::event, Contradicted::earlier);
  }

  // The communication launch inside the same record_param_comms after position k.
  [[nodiscard]] std::int32_t next_launch_of_comm_op(const std::vector<std::int32_t>& calls, std::size_t k,
                                                    std::int32_t comm_op) const {
    for (std::size_t i = k + 1; i < calls.size() && call(g_, calls[i]).comm_op == comm_op; ++i)
      if (is_comm_launch(g_, call(g_, calls[i]))) return call(g_, calls[i]).gpu.front();
    return kNone;
  }
  [[nodiscard]] bool launched_comm_before(const std::vector<std::int32_t>& calls, std::size_t k,
                                          std::int32_t comm_op) const {
    for (std::size_t i = k; i-- > 0 && call(g_, calls[i]).comm_op == comm_op;)
      if (is_comm_launch(g_, call(g_, calls[i]))) return true;
    return false;
  }
  [[nodiscard]] std::int32_t next_launch(const std::vector<std::int32_t>& calls, std::size_t k) const {
    for (std::size_t i = k + 1; i < calls.size(); ++i)
      if (!call(g_, calls[i]).gpu.empty()) return call(g_, calls[i]).gpu.front();
    return kNone;
  }
  [[nodiscard]] std::int32_t next_launch_on_other_stream(const std::vector<std::int32_t>& calls,
                                                         std::size_t k, std::int32_t stream) const {
    for (std::size_t i = k + 1; i < calls.size(); ++i) {
      const Call& c = call(g_, calls[i]);
      if (!c.gpu.empty() && g_.work(c.gpu.front()).stream != stream) return c.gpu.front();
    }
    return kNone;
  }
  // The next work on the stream of the thread's next non-communication launch.
  [[nodiscard]] std::int32_t next_work(const std::vector<std::int32_t>& calls, std::size_t k,
                                       const ThreadState& state) const {
    for (std::size_t i = k + 1; i < calls.size(); ++i) {
      const Call& c = call(g_, calls[i]);
      if (!c.gpu.empty() && !g_.work(c.gpu.front()).communication)
        return first_launched_after(g_, g_.work(c.gpu.front()).stream, call(g_, calls[k]).start_us);
    }
    const std::int32_t stream = state.current_stream != kNone ? state.current_stream : main_stream_;
    return stream == kNone ? kNone : first_launched_after(g_, stream, call(g_, calls[k]).start_us);
  }

  // With an execution trace: a wait contains the sequence number of its collective.
  void index_sequences() {
    if (g_.execution_trace == nullptr) return;
    for (const Call& c : g_.calls) {
      if (!is_comm_launch(g_, c) || c.comm_op == kNone) continue;
      const EtCollective* et = collective_of_op(c.comm_op);
      if (et != nullptr && !et->is_wait && et->sequence >= 0)
        work_of_sequence_[{repetition_of_op(c.comm_op), et->sequence}] = c.gpu.front();
    }
  }
  [[nodiscard]] const EtCollective* collective_of_op(std::int32_t op) const {
    if (g_.et_node_of_op.empty()) return nullptr;
    const std::int32_t node = g_.et_node_of_op[static_cast<std::size_t>(op)];
    if (node == kNone) return nullptr;
    const std::int32_t c = g_.execution_trace->nodes[static_cast<std::size_t>(node)].collective;
    return c == kNone ? nullptr : &g_.execution_trace->collectives[static_cast<std::size_t>(c)];
  }
  [[nodiscard]] std::int32_t repetition_of_op(std::int32_t op) const {
    return g_.et_repetition_of_op.empty() ? 0 : g_.et_repetition_of_op[static_cast<std::size_t>(op)];
  }
  [[nodiscard]] std::int32_t collective_of_wait(const Call& c) const {
    if (g_.execution_trace == nullptr) return kNone;
    const EtCollective* et = collective_of_op(c.comm_op);
    if (et == nullptr || !et->is_wait) return kNone;
    const auto it = work_of_sequence_.find({repetition_of_op(c.comm_op), et->sequence});
    return it == work_of_sequence_.end() ? kNone : it->second;
  }

  // PyTorch's NCCL process group makes every collective wait for the current stream, even if the call is not
  // in the trace.
  void launches_without_wait() {
    for (const auto& calls : g_.calls_of_thread) {
      std::int32_t current = kNone;
      for (const std::int32_t i : calls) {
        const Call& c = call(g_, i);
        if (c.gpu.empty()) continue;
        const std::int32_t first = c.gpu.front();
        if (!g_.work(first).communication) {
          current = g_.work(first).stream;
          continue;
        }
        const std::int32_t source_stream = current != kNone ? current : main_stream_;
        if (source_stream == kNone || comm_with_wait_.contains(first) ||
            g_.work(first).stream == source_stream)
          continue;
        add(last_launched_before(g_, source_stream, c.start_us), first, EdgeOrigin::event,
            Contradicted::earlier);
      }
    }
  }

  // With an execution trace: work that reads a storage which a collective wrote (also through a view) runs
  // after the collective.
  void tensor_edges() {
    if (g_.execution_trace == nullptr || g_.et_node_of_op.empty()) return;
    const ExecutionTrace& et = *g_.execution_trace;
    // Storage -> (time of launch, work).
    std::unordered_map<std::int64_t, std::vector<std::pair<double, std::int32_t>>> written;
    for (const Call& c : g_.calls) {
      if (!is_comm_launch(g_, c) || c.comm_op == kNone) continue;
      const std::int32_t node = g_.et_node_of_op[static_cast<std::size_t>(c.comm_op)];
      if (node == kNone) continue;
      for (const TensorUse& t : et.outputs(et.nodes[static_cast<std::size_t>(node)]))
        if (t.on_gpu) written[t.storage].emplace_back(c.start_us, c.gpu.front());
    }
    if (written.empty()) return;
    for (auto& [storage, list] : written) std::ranges::sort(list);
    std::set<std::pair<std::int32_t, std::int32_t>> done;  // (collective, stream)
    for (const Call& c : g_.calls) {
      if (c.gpu.empty() || c.op == kNone || g_.work(c.gpu.front()).communication) continue;
      const std::int32_t target = c.gpu.front();
      const std::int32_t node = g_.et_node_of_op[static_cast<std::size_t>(c.op)];
      if (node == kNone) continue;
      for (const TensorUse& t : et.inputs(et.nodes[static_cast<std::size_t>(node)])) {
        const auto it = written.find(t.storage);
        if (it == written.end()) continue;
        std::int32_t source = kNone;  // the last collective before that wrote the storage
        for (const auto& [launched, w] : it->second)
          if (launched < c.start_us) source = w;
        if (source == kNone || g_.work(source).stream == g_.work(target).stream) continue;
        if (!done.insert({source, g_.work(target).stream}).second) continue;
        add(source, target, EdgeOrigin::tensor, Contradicted::drop, /*inferred=*/false);
      }
    }
  }

  // What to do with an edge that recorded times contradict: keep it, use earlier work on the source stream,
  // or drop it.
  enum class Contradicted { keep, earlier, drop };

  // Adds an edge unless it exists, is within one stream, or is contradicted by recorded times.
  void add(std::int32_t from, std::int32_t to, EdgeOrigin origin, Contradicted rule, bool inferred = true) {
    if (from == kNone || to == kNone || from == to || g_.work(from).stream == g_.work(to).stream) return;
    // Edges always point forward in recorded time: work cannot wait for work that starts after it. Therefore
    // edges never form a cycle.
    const auto possible = [&](std::int32_t source) {
      return g_.work(source).start_us <= g_.work(to).start_us &&
             (rule == Contradicted::keep ||
              g_.work(source).end_us <= g_.work(to).start_us + kClockToleranceUs);
    };
    if (rule == Contradicted::earlier)
      while (from != kNone && !possible(from)) from = g_.work(from).previous;
    if (from == kNone || !possible(from)) return;
    if (!known_.insert({from, to}).second) return;
    GpuEdge edge{.from = from, .to = to};
    edge.info.origin = origin;
    edge.info.inferred = inferred;
    g_.gpu_edges.push_back(edge);
  }

  RankGraph& g_;
  std::set<std::int32_t> comm_streams_;
  std::size_t most_work_ = 0;
  std::int32_t main_stream_ = kNone;  // the stream with most work that is not communication
  std::unordered_map<std::int64_t, const StreamSync*> sync_of_correlation_;
  std::unordered_map<std::int64_t, std::int32_t> call_of_correlation_;
  std::map<std::pair<std::int32_t, std::int64_t>, std::int32_t> work_of_sequence_;  // (iteration, sequence)
  std::set<std::int32_t> comm_with_wait_;
  std::set<std::pair<std::int32_t, std::int32_t>> known_;
};

}  // namespace

std::int32_t last_launched_before(const RankGraph& g, std::int32_t stream, double time_us) {
  const auto& list = g.streams[static_cast<std::size_t>(stream)].work;
  const auto it = std::partition_point(list.begin(), list.end(),
                                       [&](std::int32_t i) { return g.work(i).queued_us < time_us; });
  return it == list.begin() ? kNone : *std::prev(it);
}

std::int32_t last_ended(const RankGraph& g, std::int32_t i, double ended_by_us) {
  while (i != kNone && g.work(i).end_us > ended_by_us) i = g.work(i).previous;
  return i;
}

void find_gpu_waits(RankGraph& graph) { WaitFinder{graph}.run(); }

// For each late kernel, examines all other streams of its device and keeps the latest kernel that explains
// the start.
void find_busy_device(RankGraph& g, const std::vector<double>& ready_us) {
  // A kernel that was ready but started late may have waited for the device, because a kernel of another
  // stream occupied it. A successor starts within 6 us of the end of the kernel that occupied the device
  // (stream gap plus rounding of the clock). A kernel that takes the device at the same moment may start up
  // to 6 us after this work was ready. There are two forms: (i) the work starts after the end of the other
  // kernel; (ii) it starts while the last blocks of the other kernel still run. Form (ii) requires that the
  // other kernel has more blocks than fit at once. A GEMM block with large tiles fills an SM, so from 2
  // blocks per SM on there is a second wave, and waiting work starts when most blocks are done.
  constexpr double kFollowsWithinUs = 6, kShareDone = 0.5;
  constexpr float kSecondWaveBlocksPerSm = 2;
  for (std::size_t i = 0; i < g.gpu.size(); ++i) {
    const GpuWork& w = g.gpu[i];
    if (w.call == kNone || w.start_us - ready_us[i] <= kLateUs) continue;
    GpuEdge edge{.to = static_cast<std::int32_t>(i),
                 .info = {EdgeOrigin::device_busy, /*inferred=*/true, /*kept=*/true, 0}};
    double best = -1;
    for (std::size_t s = 0; s < g.streams.size(); ++s) {
      if (static_cast<std::int32_t>(s) == w.stream ||
          g.streams[s].device != g.streams[static_cast<std::size_t>(w.stream)].device)
        continue;
      const auto& list = g.streams[s].work;
      // The last kernel on that stream that started before this work.
      auto it = std::partition_point(list.begin(), list.end(),
                                     [&](std::int32_t k) { return g.work(k).start_us < w.start_us; });
      while (it != list.begin()) {
        --it;
        const GpuWork& other = g.work(*it);
        if (other.end_us <= ready_us[i]) break;
        if (other.kind != GpuOp::Kind::kernel || other.communication ||
            other.start_us > ready_us[i] + kFollowsWithinUs)
          continue;
        const double after_end = w.start_us - other.end_us;
        const double share = other.length_us() > 0 ? (w.start_us - other.start_us) / other.length_us() : 1;
        if (after_end >= 0 && after_end <= kFollowsWithinUs && other.end_us > best) {
          best = other.end_us;
          edge.from = *it;
          edge.from_start = false;
          edge.delay_us = after_end;
          edge.info.share_of_source = 0;
        } else if (after_end < 0 && share > kShareDone &&
                   g.recorded->gpu_ops[other.recorded].blocks_per_sm >= kSecondWaveBlocksPerSm &&
                   w.start_us > best) {
          best = w.start_us;
          edge.from = *it;
          edge.from_start = true;
          edge.delay_us = w.start_us - other.start_us;
          edge.info.share_of_source = static_cast<float>(share);
        }
      }
    }
    if (edge.from != kNone) g.gpu_edges.push_back(edge);
  }
}

}  // namespace stepcast::detail
