#include "stepcast/trace/detail/held_calls.h"

#include <algorithm>
#include <array>
#include <limits>
#include <string_view>
#include <unordered_map>

#include "stepcast/base/statistics.h"
#include "stepcast/trace/detail/gpu_waits.h"

namespace stepcast::detail {
namespace {

enum class MemoryCall : std::uint8_t { no, frees, allocates };

// cudaFree and its like wait for all work of the device before they take memory away (CUDA runtime API, "API
// synchronization behavior"); allocations do where the driver has to. Calls in stream order do not.
MemoryCall memory_call(std::string_view name) {
  for (const std::string_view prefix : {"cuda", "hip", "cu"}) {
    if (!name.starts_with(prefix)) continue;
    name.remove_prefix(prefix.size());
    break;
  }
  if (name.find("Async") != std::string_view::npos) return MemoryCall::no;
  const auto is_any = [&](auto beginnings) {
    return std::any_of(beginnings.begin(), beginnings.end(),
                       [&](std::string_view beginning) { return name.starts_with(beginning); });
  };
  if (is_any(std::array<std::string_view, 4>{"Free", "HostFree", "MemFree", "MemUnmap"}))
    return MemoryCall::frees;
  if (is_any(std::array<std::string_view, 4>{"Malloc", "HostAlloc", "HostMalloc", "MemAlloc"}))
    return MemoryCall::allocates;
  return MemoryCall::no;
}

// Where a call is long, began while the device worked, and returned behind the last work launched before it.
void find_memory_calls(const RankGraph& g, CpuLanes& lanes) {
  for (std::size_t c = 0; c < g.calls.size(); ++c) {
    const Call& call = g.calls[c];
    if (call.kind != CallKind::other || call.end_us - call.start_us < kLateUs) continue;
    const MemoryCall what =
        memory_call(g.recorded->names.text(g.recorded->runtime_calls[call.recorded].name));
    if (what == MemoryCall::no) continue;
    CpuWait wait{
        .call = static_cast<std::int32_t>(c), .kind = WaitKind::held, .sources = {}, .inferred = true};
    double device_free_us = call.start_us;
    for (std::size_t s = 0; s < g.streams.size(); ++s) {
      const std::int32_t last = last_launched_before(g, static_cast<std::int32_t>(s), call.start_us);
      if (last == kNone) continue;
      const double end_us = g.gpu[static_cast<std::size_t>(last)].end_us;
      device_free_us = std::max(device_free_us, end_us);
      if (end_us > call.start_us) wait.sources.push_back(last);
    }
    if (device_free_us < call.start_us + kLateUs || device_free_us > call.end_us + kClockToleranceUs)
      continue;
    wait.own_us = std::max(0.0, call.end_us - device_free_us);
    // An allocation is long by itself, too, and may outlast the GPU's work by chance.
    if (what == MemoryCall::allocates && wait.own_us > device_free_us - call.start_us) continue;
    lanes.waits.push_back(std::move(wait));
  }
}

// How many pieces of work of a stream were launched and not over at a moment.
class StreamQueue {
 public:
  StreamQueue(const RankGraph& g, const Stream& stream) {
    for (const std::int32_t i : stream.work) {
      if (is_later_node(g, static_cast<std::size_t>(i))) continue;  // one launch for many
      const GpuWork& w = g.gpu[static_cast<std::size_t>(i)];
      // Nobody knows since when work without a launch in the file was pending.
      const std::int64_t correlation = g.recorded->gpu_ops[w.recorded].correlation;
      if (w.call == kNone && !g.index->call_outside(correlation, {})) continue;
      launched_.push_back(w.call == kNone ? -std::numeric_limits<double>::infinity()
                                          : g.calls[static_cast<std::size_t>(w.call)].start_us);
      ended_.push_back({w.end_us, i});
    }
    std::sort(launched_.begin(), launched_.end());
    std::sort(ended_.begin(), ended_.end());
  }

  [[nodiscard]] std::size_t pending(double time_us) const {
    const auto launched = std::lower_bound(launched_.begin(), launched_.end(), time_us) - launched_.begin();
    const auto ended = first_end_behind(time_us) - ended_.begin();
    return static_cast<std::size_t>(std::max<std::ptrdiff_t>(0, launched - ended));
  }
  // What ended last in (from, to], kNone: nothing.
  [[nodiscard]] std::int32_t last_end_in(double from_us, double to_us) const {
    const auto behind = first_end_behind(to_us);
    if (behind == ended_.begin() || std::prev(behind)->first <= from_us) return kNone;
    return std::prev(behind)->second;
  }

 private:
  using Ends = std::vector<std::pair<double, std::int32_t>>;
  [[nodiscard]] Ends::const_iterator first_end_behind(double time_us) const {
    return std::partition_point(ended_.begin(), ended_.end(),
                                [&](const auto& end) { return end.first <= time_us; });
  }

  std::vector<double> launched_;
  Ends ended_;  // time, work
};

// The driver holds 1,024 launches of a stream; then a launch returns when one of them is over. The queue counts more
// than kernels, so that fewer of them may fill it: full is what comes near the most that were ever pending.
void find_full_queues(const RankGraph& g, CpuLanes& lanes) {
  constexpr std::size_t kFewest = 800;
  constexpr double kNearMost = 0.95;
  for (const Stream& stream : g.streams) {
    if (stream.work.size() < kFewest) continue;
    const StreamQueue queue(g, stream);
    struct Launch {
      std::int32_t call;
      std::size_t pending;
    };
    std::vector<Launch> launches;
    std::size_t most = 0;
    for (const std::int32_t i : stream.work) {
      const GpuWork& w = g.gpu[static_cast<std::size_t>(i)];
      if (w.call == kNone || is_later_node(g, static_cast<std::size_t>(i))) continue;
      const Call& call = g.calls[static_cast<std::size_t>(w.call)];
      if (call.blocking_copy) continue;
      launches.push_back({w.call, queue.pending(call.start_us)});
      most = std::max(most, launches.back().pending);
    }
    if (most < kFewest) continue;
    const auto is_full = [&](const Launch& launch) {
      return static_cast<double>(launch.pending) >= kNearMost * static_cast<double>(most);
    };
    std::unordered_map<std::uint32_t, std::vector<double>> free_lengths;  // by the name of the call
    for (const Launch& launch : launches) {
      const Call& call = g.calls[static_cast<std::size_t>(launch.call)];
      if (!is_full(launch))
        free_lengths[g.recorded->runtime_calls[call.recorded].name.index()].push_back(call.end_us -
                                                                                      call.start_us);
    }
    std::unordered_map<std::uint32_t, double> usual_us;
    for (auto& [name, lengths] : free_lengths) {
      std::sort(lengths.begin(), lengths.end());
      usual_us[name] = nearest_rank_quantile(lengths, 0.5);
    }
    for (const Launch& launch : launches) {
      const Call& call = g.calls[static_cast<std::size_t>(launch.call)];
      const auto usual = usual_us.find(g.recorded->runtime_calls[call.recorded].name.index());
      if (!is_full(launch) || usual == usual_us.end()) continue;
      if (call.end_us - call.start_us <= usual->second + 2 * kClockToleranceUs) continue;
      const std::int32_t over = queue.last_end_in(call.start_us, call.end_us + kClockToleranceUs);
      if (over == kNone) continue;
      const double behind_us = call.end_us - g.gpu[static_cast<std::size_t>(over)].end_us;
      if (behind_us > usual->second + kLateUs) continue;
      lanes.waits.push_back({.call = launch.call,
                             .kind = WaitKind::held,
                             .sources = {over},
                             .inferred = true,
                             .own_us = std::max(0.0, behind_us)});
    }
  }
}

}  // namespace

void find_held_calls(const RankGraph& g, CpuLanes& lanes) {
  find_memory_calls(g, lanes);
  find_full_queues(g, lanes);
}

}  // namespace stepcast::detail
