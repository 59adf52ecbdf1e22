#include "stepcast/trace/detail/held_calls.h"

#include <algorithm>
#include <array>
#include <limits>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "stepcast/trace/detail/gpu_waits.h"
#include "stepcast/trace/detail/launch_queue.h"

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
    return std::ranges::any_of(beginnings,
                               [&](std::string_view beginning) { return name.starts_with(beginning); });
  };
  if (is_any(std::array<std::string_view, 4>{"Free", "HostFree", "MemFree", "MemUnmap"}))
    return MemoryCall::frees;
  if (is_any(std::array<std::string_view, 4>{"Malloc", "HostAlloc", "HostMalloc", "MemAlloc"}))
    return MemoryCall::allocates;
  return MemoryCall::no;
}

// What a call waited for, had it waited for all work launched before it, and when that was over.
struct DeviceWait {
  std::vector<std::int32_t> work;  // the last of every stream
  double over_us = 0;
};
DeviceWait all_before(const RankGraph& g, const Call& call) {
  DeviceWait wait{{}, -std::numeric_limits<double>::infinity()};
  for (std::size_t s = 0; s < g.streams.size(); ++s) {
    const std::int32_t last = last_launched_before(g, static_cast<std::int32_t>(s), call.start_us);
    if (last == kNone) continue;
    wait.work.push_back(last);
    wait.over_us = std::max(wait.over_us, g.gpu[static_cast<std::size_t>(last)].end_us);
  }
  return wait;
}

// Calls that free memory wait for the device, also where it has nothing to do, unless one of that name returned while it
// worked. An allocation does where most of a long call was such waiting.
void find_memory_calls(const RankGraph& g, CpuLanes& lanes) {
  struct Candidate {
    std::int32_t call;
    MemoryCall what;
    DeviceWait device;
  };
  std::vector<Candidate> candidates;
  std::unordered_map<std::uint32_t, MemoryCall> known;  // by the name of the call
  std::unordered_set<std::uint32_t> not_waiting;
  for (std::size_t c = 0; c < g.calls.size(); ++c) {
    const Call& call = g.calls[c];
    if (call.kind != CallKind::other) continue;
    const NameId name = g.recorded->runtime_calls[call.recorded].name;
    const auto [what, fresh] = known.try_emplace(name.index(), MemoryCall::no);
    if (fresh) what->second = memory_call(g.recorded->names.text(name));
    if (what->second == MemoryCall::no) continue;
    DeviceWait device = all_before(g, call);
    if (device.over_us > call.end_us + kClockToleranceUs)
      not_waiting.insert(name.index());
    else if (!device.work.empty())
      candidates.push_back({static_cast<std::int32_t>(c), what->second, std::move(device)});
  }
  for (Candidate& candidate : candidates) {
    const Call& call = g.calls[static_cast<std::size_t>(candidate.call)];
    const double waited_us = candidate.device.over_us - call.start_us;
    const double own_us =
        std::clamp(call.end_us - candidate.device.over_us, 0.0, call.end_us - call.start_us);
    const bool held = waited_us >= kLateUs;
    // An allocation is long by itself, too, and may outlast the GPU's work by chance.
    if (candidate.what == MemoryCall::allocates && (!held || own_us > waited_us)) continue;
    if (!held && not_waiting.contains(g.recorded->runtime_calls[call.recorded].name.index())) continue;
    lanes.waits.push_back({.call = candidate.call,
                           .kind = WaitKind::held,
                           .sources = std::move(candidate.device.work),
                           .inferred = true,
                           .own_us = own_us});
  }
}

}  // namespace

void find_held_calls(const RankGraph& g, CpuLanes& lanes) {
  find_memory_calls(g, lanes);
  find_full_queues(g, lanes);
}

}  // namespace stepcast::detail
