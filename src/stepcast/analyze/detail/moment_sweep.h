// Sweeps over the activities of all GPU streams of a rank in the order of time. One pass over all stretches.
// The next change is searched in all streams, except while only one of them changes.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "stepcast/base/interval.h"

namespace stepcast::detail {

// The activity of a stream. The order has no meaning; ActivityCounts uses it as an index.
enum class Activity : std::uint8_t {
  computation,  // a kernel that is not communication
  transfer,
  copy,
  waiting,  // in a collective, for a rank that has not arrived
  posted,   // a receive that waits for its sender; it delays no other work
  body,     // a task that represents a body (program/task_bodies.h)
};

// An interval in which one stream has one activity.
struct Stretch {
  Interval time;           // inside the window; may have no length
  std::size_t task = 0;    // flat number
  std::uint32_t what = 0;  // computation: KernelClass; transfer: GroupId + 1; body: its number
  Activity activity = Activity::computation;
  bool begins_task = true;  // false: the task began in an earlier stretch
};

inline constexpr std::size_t kActivityCount = 6;
using ActivityCounts = std::array<std::uint32_t, kActivityCount>;  // [Activity]

// A stretch in progress, and the index of its stream.
struct RunningStretch {
  std::size_t stream = 0;
  const Stretch* stretch = nullptr;
};

// The implementation of sweep_moments(). Each stream has a time of its next change (a stretch ends or
// begins); the sweep repeatedly processes the earliest change.
template <class OnMoment, class OnGap>
class MomentSweep {
 public:
  MomentSweep(std::span<const std::vector<Stretch>> streams, Interval window, OnMoment& on_moment,
              OnGap& on_gap)
      : on_moment_(on_moment),
        on_gap_(on_gap),
        changes_(streams.size(), kNever),
        now_(window.start_us),
        gap_from_(window.start_us),
        window_end_(window.end_us) {
    for (const std::vector<Stretch>& stretches : streams) {
      if (!stretches.empty()) changes_[streams_.size()] = stretches.front().time.start_us;
      streams_.push_back({stretches.data(), stretches.data() + stretches.size()});
    }
  }

  // Processes all changes, then the gap at the end of the window.
  void run() {
    for (;;) {
      std::size_t soonest = 0;
      double at = kNever, then = kNever;  // the times of the earliest change and of the one after it
      for (std::size_t s = 0; s < changes_.size(); ++s) {
        if (changes_[s] < at) {
          then = at;
          at = changes_[s];
          soonest = s;
        } else {
          then = std::min(then, changes_[s]);
        }
      }
      if (at == kNever) break;
      if (at == then) {
        change(at, 0, streams_.size());
        continue;
      }
      // Fast path: only one stream changes until `then`, so the other streams are not searched.
      do {
        if (!follow(soonest)) change(changes_[soonest], soonest, soonest + 1);
      } while (changes_[soonest] < then);
    }
    if (!was_busy_ && window_end_ > gap_from_)
      on_gap_(Interval{gap_from_, window_end_}, static_cast<const Stretch*>(nullptr));
  }

 private:
  static constexpr double kNever = std::numeric_limits<double>::infinity();
  static constexpr std::size_t kNothing = std::numeric_limits<std::size_t>::max();
  struct Stream {
    // The first stretch that has not begun, and the end of the stretches.
    const Stretch *next, *end;
    std::size_t runs_at = kNothing;  // index in running_; kNothing: the stream is idle
  };
  static bool is_posted(const Stretch& stretch) { return stretch.activity == Activity::posted; }
  std::uint32_t& count_of(const Stretch& stretch) {
    return count_[static_cast<std::size_t>(stretch.activity)];
  }

  // Reports the moment up to `at`, during which the running stretches did not change.
  void pass_until(double at) {
    if (at > now_ && !running_.empty())
      on_moment_(Interval{now_, at}, std::span<const RunningStretch>{running_}, count_);
    now_ = at;
  }

  // Fast path for the most common change: a stretch ends and the next one begins at the same time, both busy
  // or both posted receives. Returns false if the change is of another kind.
  bool follow(std::size_t s) {
    Stream& stream = streams_[s];
    const double at = changes_[s];
    if (stream.runs_at == kNothing || stream.next == stream.end) return false;
    const Stretch& next = *stream.next;
    const Stretch*& runs = running_[stream.runs_at].stretch;
    if (next.time.start_us != at || next.time.end_us <= at || is_posted(next) != is_posted(*runs))
      return false;
    pass_until(at);
    --count_of(*runs);
    ++count_of(next);
    runs = &next;
    ++stream.next;
    changes_[s] = next.time.end_us;
    return true;
  }

  // Applies the changes at time `at` of the streams in [from, to): ends, then begins, then the start or end
  // of a gap.
  void change(double at, std::size_t from, std::size_t to) {
    pass_until(at);
    for (std::size_t s = from; s < to; ++s)
      if (streams_[s].runs_at != kNothing && changes_[s] <= at) stop(streams_[s]);
    const Stretch* first = nullptr;
    for (std::size_t s = from; s < to; ++s)
      if (changes_[s] <= at) begin(s, at, first);
    const bool is_busy = running_.size() > count_[static_cast<std::size_t>(Activity::posted)];
    if (is_busy && !was_busy_ && at > gap_from_) on_gap_(Interval{gap_from_, at}, first);
    if (!is_busy && was_busy_) gap_from_ = at;
    was_busy_ = is_busy;
  }

  // Ends the stretch of a stream. The last running stretch moves to its place.
  void stop(Stream& stream) {
    RunningStretch& place = running_[stream.runs_at];
    --count_of(*place.stretch);
    place = running_.back();
    streams_[place.stream].runs_at = stream.runs_at;
    running_.pop_back();
    stream.runs_at = kNothing;
  }

  // Begins the stretches of a stream that are due at `at`, including those without length. `first`: the
  // stretch that ends a gap, preferably one that begins its task, then the one with the lowest task number.
  void begin(std::size_t s, double at, const Stretch*& first) {
    Stream& stream = streams_[s];
    changes_[s] = kNever;
    for (; stream.next != stream.end; ++stream.next) {
      const Stretch& stretch = *stream.next;
      if (stretch.time.start_us > at || stream.runs_at != kNothing) {
        if (stream.runs_at == kNothing) changes_[s] = stretch.time.start_us;
        return;
      }
      const bool better = first == nullptr || (stretch.begins_task && !first->begins_task) ||
                          (stretch.begins_task == first->begins_task && stretch.task < first->task);
      if (!is_posted(stretch) && better) first = &stretch;
      if (stretch.time.end_us <= at) continue;
      stream.runs_at = running_.size();
      running_.push_back({s, &stretch});
      ++count_of(stretch);
      changes_[s] = stretch.time.end_us;
    }
  }

  OnMoment& on_moment_;
  OnGap& on_gap_;
  std::vector<Stream> streams_;
  std::vector<double> changes_;  // [stream] when its stretch ends, or its next one begins
  std::vector<RunningStretch> running_;
  ActivityCounts count_{};  // of running_, by activity
  double now_, gap_from_, window_end_;
  bool was_busy_ = false;
};

// `streams` contains stretches inside `window`, sorted and without overlaps within a stream. Calls
//   on_moment(moment, running, counts)      for each interval in which stretches run and none begins or ends;
//                                           running: one per busy stream, in any order; counts: by Activity
//   on_gap(gap, next)                       for each maximal interval with at most posted receives; next: the
//                                           stretch that ends it (of several, the lowest task number), or null
//                                           at the end of the window
template <class OnMoment, class OnGap>
void sweep_moments(std::span<const std::vector<Stretch>> streams, Interval window, OnMoment&& on_moment,
                   OnGap&& on_gap) {
  MomentSweep{streams, window, on_moment, on_gap}.run();
}

}  // namespace stepcast::detail
