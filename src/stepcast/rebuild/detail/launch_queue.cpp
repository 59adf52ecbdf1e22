// Finds calls that wait for the GPU although they are not synchronising calls: launches on a full queue, and
// calls that free memory. In a replay with slower kernels, more launches have to wait, so edges are also
// added for launches that did not wait in the recorded step.
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

// Number of pending launches at which CUDA's driver delays the next one: 1,024 kernel launches, less the
// number that the queue of a V100 was observed to keep for itself (docs/constants.md). No value is known for
// ROCm.
constexpr std::ptrdiff_t kCudaDepth = 1022;
// The queue also contains entries that are not recorded, so fewer kernels can fill it. A queue counts as full
// if the number of pending launches is at least this share of its maximum, which must be at least kFewest.
constexpr std::ptrdiff_t kFewest = 800;
constexpr double kNearMost = 0.95;
// Fewer long calls than this are coincidence.
constexpr std::size_t kFewestHeld = 8;

// One launch on a stream; for a CUDA graph, its first node.
struct Launch {
  double call_us = 0;         // start of the call
  std::int32_t call = kNone;  // none: before the window
  std::int32_t work = kNone;
};

// The launches of one stream in order, and the number of launches that were complete at a given time.
class LaunchQueue {
 public:
  LaunchQueue(const RankGraph& g, const Stream& stream) : g_(g) {
    for (const std::int32_t i : stream.work) {
      if (is_later_node(g, static_cast<std::size_t>(i))) continue;  // several nodes of one launch
      const GpuWork& w = work(i);
      if (w.call != kNone)
        launches_.push_back({g.calls[static_cast<std::size_t>(w.call)].start_us, w.call, i});
      else if (const auto call = g.index->call_outside(g.recorded->gpu_ops[w.recorded].correlation, {}))
        launches_.push_back({g.us(g.recorded->runtime_calls[*call].start), kNone, i});
      else
        continue;  // work without a launch in the file has been pending for an unknown time
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
  // True if the launch is in the window and its call does not wait for its own work.
  [[nodiscard]] bool may_be_held(std::ptrdiff_t n) const {
    return (*this)[n].call != kNone && !call(n).blocking_copy;
  }
  [[nodiscard]] double end_us(std::ptrdiff_t n) const { return work((*this)[n].work).end_us; }
  // Number of launches up to the n-th that were not complete when its call returned.
  [[nodiscard]] std::ptrdiff_t pending(std::ptrdiff_t n) const {
    return n + 1 - (std::upper_bound(ends_us_.begin(), ends_us_.end(), call(n).end_us) - ends_us_.begin());
  }
  // The last launch up to the n-th that was complete when the call of launch `held` returned; -1 if there is
  // none.
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

// A launch that waited, and the launch that had to complete first.
struct Held {
  std::ptrdiff_t launch = 0;
  std::ptrdiff_t behind = 0;
};

// Decides for one stream which launches waited, and adds waits for all launches beyond the depth of the
// queue.
class FullQueue {
 public:
  explicit FullQueue(const LaunchQueue& queue) : queue_(queue) {
    for (std::ptrdiff_t n = 0; n < queue_.size(); ++n)
      if (queue_.may_be_held(n)) most_ = std::max(most_, queue_.pending(n));
    find_usual_lengths();
    find_held();
  }

  // With enough observed cases the depth is learned from them, and can change during the step. Otherwise the
  // known depth of CUDA is used for calls with names of CUDA.
  void add_waits(CpuLanes& lanes) const {
    const bool seen = held_.size() >= kFewestHeld;
    // The known depth of the driver, unless more launches were pending.
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
  // True if the number of pending launches is near its maximum.
  [[nodiscard]] bool is_full(std::ptrdiff_t n) const {
    return most_ >= kFewest &&
           static_cast<double>(queue_.pending(n)) >= kNearMost * static_cast<double>(most_);
  }

  // [name of the call] usual length: the median of calls with room in the queue, else the shortest call.
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

  // Finds launches that waited: longer than usual, on a full queue, and returned shortly after work completed
  // that made room.
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

  // Median time from the completion of the awaited work to the return, microseconds.
  [[nodiscard]] double usual_behind_us() const {
    std::vector<double> behind;
    for (const Held& h : held_)
      behind.push_back(std::max(0.0, queue_.call(h.launch).end_us - queue_.end_us(h.behind)));
    std::ranges::sort(behind);
    return nearest_rank_quantile(behind, 0.5);
  }

  const LaunchQueue& queue_;
  std::ptrdiff_t most_ = 0;                   // maximum number of pending launches
  std::map<std::uint32_t, double> usual_us_;  // [name of the call] microseconds
  std::vector<Held> held_;
};

enum class MemoryCall : std::uint8_t { no, frees, allocates };

// cudaFree and similar calls wait for all work of the device before they free memory (CUDA runtime API, "API
// synchronization behavior"). Allocations wait if the driver has to. Stream-ordered calls (Async) do not
// wait.
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

// The work that a call waited for if it waited for everything launched before it, and when that work
// completed.
struct DeviceWait {
  std::vector<std::int32_t> work;  // last work on each stream
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

// Adds waits for calls that free memory, even if the device was idle, unless a call of the same name returned
// while the device was busy. Adds waits for allocations only if a long call consisted mostly of waiting.
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
    // An allocation can be long for other reasons, and may outlast the GPU's work by chance.
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

// Streams with few launches cannot fill the queue.
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
