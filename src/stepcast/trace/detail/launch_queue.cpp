#include "stepcast/trace/detail/launch_queue.h"

#include <algorithm>
#include <map>
#include <string_view>

#include "stepcast/base/statistics.h"

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

}  // namespace

void find_full_queues(const RankGraph& g, CpuLanes& lanes) {
  for (const Stream& stream : g.streams) {
    if (static_cast<std::ptrdiff_t>(stream.work.size()) < kFewest) continue;
    const LaunchQueue queue(g, stream);
    FullQueue(queue).add_waits(lanes);
  }
}

}  // namespace stepcast::detail
