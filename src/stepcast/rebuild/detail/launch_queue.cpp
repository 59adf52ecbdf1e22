#include "stepcast/rebuild/detail/launch_queue.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "stepcast/base/statistics.h"
#include "stepcast/rebuild/detail/gpu_waits.h"

namespace stepcast::detail {

namespace {

// Pending launches at which CUDA's driver holds the next one back: "1,024 kernel launches" less what a recorded queue of
// a V100 was seen to keep for itself (docs/constants.md). None is known of ROCm.
constexpr std::ptrdiff_t kCudaDepth = 1022;
// Other things than recorded work stand in the queue, too, so that fewer kernels may fill it; a queue is full at what
// comes near the most that were ever pending.
constexpr std::ptrdiff_t kFewest = 800;
constexpr double kNearMost = 0.95;
// Fewer long calls are chance.
constexpr std::size_t kFewestHeld = 8;

// One launch of a stream, first of its nodes.
struct Launch {
  double call_us = 0;         // begin of the call
  std::int32_t call = kNone;  // none: before the window
  std::int32_t work = kNone;
};

// The launches of one stream in their order, and how many were over at a moment.
class LaunchQueue {
 public:
  LaunchQueue(const RankGraph& g, const Stream& stream) : g_(g) {
    for (const std::int32_t i : stream.work) {
      if (is_later_node(g, static_cast<std::size_t>(i))) continue;  // one launch for many
      const GpuWork& w = work(i);
      if (w.call != kNone)
        launches_.push_back({g.calls[static_cast<std::size_t>(w.call)].start_us, w.call, i});
      else if (const auto call = g.index->call_outside(g.recorded->gpu_ops[w.recorded].correlation, {}))
        launches_.push_back({g.us(g.recorded->runtime_calls[*call].start), kNone, i});
      else
        continue;  // nobody knows since when work without a launch in the file was pending
      ends_us_.push_back(w.end_us);
    }
    std::ranges::stable_sort(launches_, {}, &Launch::call_us);
    std::ranges::sort(ends_us_);
  }

  [[nodiscard]] std::ptrdiff_t size() const { return static_cast<std::ptrdiff_t>(launches_.size()); }
  [[nodiscard]] const Launch& operator[](std::ptrdiff_t n) const {
    return launches_[static_cast<std::size_t>(n)];
  }
  [[nodiscard]] const Call& call(std::ptrdiff_t n) const {
    return g_.calls[static_cast<std::size_t>((*this)[n].call)];
  }
  // Launched in the window, by a call that does not wait for its own work.
  [[nodiscard]] bool may_be_held(std::ptrdiff_t n) const {
    return (*this)[n].call != kNone && !call(n).blocking_copy;
  }
  [[nodiscard]] double end_us(std::ptrdiff_t n) const { return work((*this)[n].work).end_us; }
  // Launched up to the n-th and not over when its call returned.
  [[nodiscard]] std::ptrdiff_t pending(std::ptrdiff_t n) const {
    return n + 1 - (std::upper_bound(ends_us_.begin(), ends_us_.end(), call(n).end_us) - ends_us_.begin());
  }
  // The last launch up to the n-th whose work was over when the call of launch `held` returned; -1: none.
  [[nodiscard]] std::ptrdiff_t over_by_return(std::ptrdiff_t n, std::ptrdiff_t held) const {
    while (n >= 0 && end_us(n) > call(held).end_us + kClockToleranceUs) --n;
    return n;
  }
  [[nodiscard]] NameId name(std::ptrdiff_t n) const {
    return g_.recorded->runtime_calls[call(n).recorded].name;
  }
  [[nodiscard]] std::string_view name_text(std::ptrdiff_t n) const {
    return g_.recorded->names.text(name(n));
  }

 private:
  [[nodiscard]] const GpuWork& work(std::int32_t i) const { return g_.gpu[static_cast<std::size_t>(i)]; }

  const RankGraph& g_;
  std::vector<Launch> launches_;
  std::vector<double> ends_us_;  // ascending
};

// A launch and the one that has to be over before it returns.
struct Held {
  std::ptrdiff_t launch = 0;
  std::ptrdiff_t behind = 0;
};

class FullQueue {
 public:
  explicit FullQueue(const LaunchQueue& queue) : queue_(queue) {
    for (std::ptrdiff_t n = 0; n < queue_.size(); ++n)
      if (queue_.may_be_held(n)) most_ = std::max(most_, queue_.pending(n));
    find_usual_lengths();
    find_held();
  }

  void add_waits(CpuLanes& lanes) const {
    const bool seen = held_.size() >= kFewestHeld;
    // What the driver is known for, unless the record says that it holds more.
    std::ptrdiff_t depth = seen ? held_.front().launch - held_.front().behind : kCudaDepth;
    if (!seen && most_ > kCudaDepth) return;
    const double behind_us = seen ? usual_behind_us() : 0;
    auto next_held = held_.begin();
    for (std::ptrdiff_t n = 0; n < queue_.size(); ++n) {
      if (!queue_.may_be_held(n)) continue;
      const Call& call = queue_.call(n);
      const double length_us = call.end_us - call.start_us;
      CpuWait wait{.call = queue_[n].call, .kind = WaitKind::held, .sources = {}, .inferred = true};
      while (next_held != held_.end() && next_held->launch < n) ++next_held;
      if (seen && next_held != held_.end() && next_held->launch == n) {
        depth = n - next_held->behind;
        wait.sources = {queue_[next_held->behind].work};
        wait.enter_us = std::min(length_us, usual_us_.at(queue_.name(n).index()));
        wait.return_us = std::max(0.0, call.end_us - queue_.end_us(next_held->behind));
      } else {
        if (!seen && !queue_.name_text(n).starts_with("cu")) continue;
        const std::ptrdiff_t over = queue_.over_by_return(n - depth, n);
        if (over < 0) continue;
        wait.sources = {queue_[over].work};
        wait.enter_us = length_us;
        wait.return_us = std::clamp(call.end_us - queue_.end_us(over), 0.0, behind_us);
      }
      lanes.waits.push_back(std::move(wait));
    }
  }

 private:
  [[nodiscard]] bool is_full(std::ptrdiff_t n) const {
    return most_ >= kFewest &&
           static_cast<double>(queue_.pending(n)) >= kNearMost * static_cast<double>(most_);
  }

  // By the name of the call: the middle of those with room in the queue, else the shortest of all.
  void find_usual_lengths() {
    std::map<std::uint32_t, std::vector<double>> with_room, all;
    for (std::ptrdiff_t n = 0; n < queue_.size(); ++n) {
      if (!queue_.may_be_held(n)) continue;
      const double length_us = queue_.call(n).end_us - queue_.call(n).start_us;
      all[queue_.name(n).index()].push_back(length_us);
      if (!is_full(n)) with_room[queue_.name(n).index()].push_back(length_us);
    }
    for (const auto& [name, lengths] : all) usual_us_[name] = *std::ranges::min_element(lengths);
    for (auto& [name, lengths] : with_room) {
      std::ranges::sort(lengths);
      usual_us_[name] = nearest_rank_quantile(lengths, 0.5);
    }
  }

  // Longer than usual on a full queue, and back as soon as work was over that began to make room meanwhile.
  void find_held() {
    for (std::ptrdiff_t n = 0; n < queue_.size(); ++n) {
      if (!queue_.may_be_held(n) || !is_full(n)) continue;
      const Call& call = queue_.call(n);
      const double usual_us = usual_us_.at(queue_.name(n).index());
      if (call.end_us - call.start_us <= usual_us + 2 * kClockToleranceUs) continue;
      const std::ptrdiff_t over = queue_.over_by_return(n - kFewest, n);
      if (over < 0 || queue_.end_us(over) <= call.start_us) continue;
      if (call.end_us - queue_.end_us(over) > usual_us + kLateUs) continue;
      held_.push_back({n, over});
    }
  }

  [[nodiscard]] double usual_behind_us() const {
    std::vector<double> behind;
    for (const Held& h : held_)
      behind.push_back(std::max(0.0, queue_.call(h.launch).end_us - queue_.end_us(h.behind)));
    std::ranges::sort(behind);
    return nearest_rank_quantile(behind, 0.5);
  }

  const LaunchQueue& queue_;
  std::ptrdiff_t most_ = 0;                   // ever pending
  std::map<std::uint32_t, double> usual_us_;  // by the name of the call
  std::vector<Held> held_;
};

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

void find_full_queues(const RankGraph& g, CpuLanes& lanes) {
  for (const Stream& stream : g.streams) {
    if (static_cast<std::ptrdiff_t>(stream.work.size()) < kFewest) continue;
    const LaunchQueue queue(g, stream);
    FullQueue(queue).add_waits(lanes);
  }
}

void find_held_calls(const RankGraph& g, CpuLanes& lanes) {
  find_memory_calls(g, lanes);
  find_full_queues(g, lanes);
}

}  // namespace stepcast::detail
