// Goes through what the GPU streams of a rank do, moment by moment: one pass, whatever the number of streams.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "stepcast/base/interval.h"

namespace stepcast::detail {

enum class Activity : std::uint8_t {
  computation,  // a kernel that is no communication
  transfer,
  copy,
  waiting,  // in a collective, for a rank that has not arrived
  posted,   // a receive that waits for its sender: it holds nobody up by itself
};

// What one stream does for a while.
struct Stretch {
  Interval time;           // inside the window; may have no length
  std::size_t task = 0;    // flat number
  std::uint32_t what = 0;  // computation: KernelClass; transfer: group + 1
  Activity activity = Activity::computation;
  bool begins_task = true;  // false: the task has started before
};

struct RunningStretch {
  std::size_t stream = 0;
  const Stretch* stretch = nullptr;
};

// `streams` holds stretches inside `window`, those of a stream sorted and free of overlaps. Calls
//   on_moment(length_us, running)   for every moment in which stretches run: one per stream, while none
//                                   begins or ends
//   on_gap(gap, next)               for every longest stretch of time without anything but posted receives;
//                                   `next` is what begins when it ends, of several the task with the lowest
//                                   number, null at the window's end
template <class OnMoment, class OnGap>
void sweep_moments(std::span<const std::vector<Stretch>> streams, Interval window, OnMoment&& on_moment,
                   OnGap&& on_gap) {
  constexpr double kNever = std::numeric_limits<double>::infinity();
  std::vector<std::size_t> next(streams.size(), 0);  // the first that has not begun
  std::vector<double> begins(streams.size(), kNever);
  for (std::size_t s = 0; s < streams.size(); ++s) {
    if (!streams[s].empty()) begins[s] = streams[s].front().time.start_us;
  }
  std::vector<RunningStretch> running;
  double now = window.start_us, gap_from = window.start_us;
  const auto busy = [&] {
    return std::any_of(running.begin(), running.end(),
                       [](const RunningStretch& r) { return r.stretch->activity != Activity::posted; });
  };
  bool was_busy = false;
  for (;;) {
    double at = kNever;
    for (const double time : begins) at = std::min(at, time);
    for (const RunningStretch& r : running) at = std::min(at, r.stretch->time.end_us);
    if (at == kNever) break;
    if (at > now && !running.empty()) on_moment(at - now, std::span<const RunningStretch>{running});
    now = at;
    std::erase_if(running, [at](const RunningStretch& r) { return r.stretch->time.end_us <= at; });
    const Stretch* first = nullptr;
    for (std::size_t s = 0; s < streams.size(); ++s) {
      while (begins[s] <= at) {
        const Stretch& stretch = streams[s][next[s]++];
        begins[s] = next[s] < streams[s].size() ? streams[s][next[s]].time.start_us : kNever;
        const bool better = first == nullptr || (stretch.begins_task && !first->begins_task) ||
                            (stretch.begins_task == first->begins_task && stretch.task < first->task);
        if (stretch.activity != Activity::posted && better) first = &stretch;
        if (stretch.time.end_us > at) running.push_back({s, &stretch});
      }
    }
    const bool is_busy = busy();
    if (is_busy && !was_busy && at > gap_from) on_gap(Interval{gap_from, at}, first);
    if (!is_busy && was_busy) gap_from = at;
    was_busy = is_busy;
  }
  if (!was_busy && window.end_us > gap_from) {
    on_gap(Interval{gap_from, window.end_us}, static_cast<const Stretch*>(nullptr));
  }
}

}  // namespace stepcast::detail
