#include "stepcast/analyze/detail/moment_sweep.h"

#include <algorithm>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace stepcast::detail::moment_sweep_test {
namespace {

struct Moment {
  double length_us;
  std::set<const Stretch*> running;
  friend bool operator==(const Moment&, const Moment&) = default;
};
struct Gap {
  double start_us, end_us;
  const Stretch* next;
  friend bool operator==(const Gap&, const Gap&) = default;
};
struct Swept {
  std::vector<Moment> moments;
  std::vector<Gap> gaps;
};

using Streams = std::vector<std::vector<Stretch>>;

Swept swept(const Streams& streams, Interval window) {
  Swept result;
  sweep_moments(
      streams, window,
      [&](Interval at, std::span<const RunningStretch> running, const ActivityCounts& counts) {
        Moment moment{at.length_us(), {}};
        ActivityCounts counted{};
        for (const RunningStretch& r : running) {
          moment.running.insert(r.stretch);
          ++counted[static_cast<std::size_t>(r.stretch->activity)];
          const std::vector<Stretch>& stream = streams[r.stream];
          EXPECT_TRUE(r.stretch >= stream.data() && r.stretch < stream.data() + stream.size());
        }
        EXPECT_EQ(moment.running.size(), running.size());
        EXPECT_EQ(counts, counted);
        result.moments.push_back(std::move(moment));
      },
      [&](Interval gap, const Stretch* next) {
        result.gaps.push_back({gap.start_us, gap.end_us, next});
      });
  return result;
}

// By looking at every stretch at every time at which one begins or ends.
Swept looked_up(const Streams& streams, Interval window) {
  std::set<double> times;
  for (const std::vector<Stretch>& stream : streams) {
    for (const Stretch& stretch : stream) times.insert({stretch.time.start_us, stretch.time.end_us});
  }
  const auto all = [&](auto visit) {
    for (const std::vector<Stretch>& stream : streams) {
      for (const Stretch& stretch : stream) visit(stretch);
    }
  };
  Swept result;
  double now = window.start_us, gap_from = window.start_us;
  bool was_busy = false;
  for (const double at : times) {
    Moment moment{at - now, {}};
    bool is_busy = false;
    const Stretch* first = nullptr;
    all([&](const Stretch& s) {
      if (s.time.start_us <= now && s.time.end_us >= at) moment.running.insert(&s);
      const bool posted = s.activity == Activity::posted;
      if (!posted && s.time.start_us <= at && s.time.end_us > at) is_busy = true;
      if (posted || s.time.start_us != at) return;
      const auto rank = [](const Stretch& x) { return std::pair{!x.begins_task, x.task}; };
      if (first == nullptr || rank(s) < rank(*first)) first = &s;
    });
    if (at > now && !moment.running.empty()) result.moments.push_back(std::move(moment));
    if (is_busy && !was_busy && at > gap_from) result.gaps.push_back({gap_from, at, first});
    if (!is_busy && was_busy) gap_from = at;
    was_busy = is_busy;
    now = at;
  }
  if (!was_busy && window.end_us > gap_from) result.gaps.push_back({gap_from, window.end_us, nullptr});
  return result;
}

TEST(MomentSweep, NamesWhatRunsAndWhatEndsAGap) {
  //  |computes a|computes b|         |transfers|
  //       |posted ...............|
  const Streams streams{{{.time = {0, 4}, .task = 0}, {.time = {4, 8}, .task = 1}},
                        {{.time = {2, 10}, .task = 2, .activity = Activity::posted}},
                        {{.time = {12, 15}, .task = 3, .activity = Activity::transfer}}};
  const Stretch &a = streams[0][0], &b = streams[0][1], &posted = streams[1][0], &transfer = streams[2][0];
  const Swept result = swept(streams, {0, 20});
  EXPECT_EQ(result.moments,
            (std::vector<Moment>{
                {2, {&a}}, {2, {&a, &posted}}, {4, {&b, &posted}}, {2, {&posted}}, {3, {&transfer}}}));
  EXPECT_EQ(result.gaps, (std::vector<Gap>{{8, 12, &transfer}, {15, 20, nullptr}}));
}

// Whole microseconds, so that much begins and ends at the same time; some stretches without length.
TEST(MomentSweep, FindsWhatLookingAtEveryMomentFinds) {
  std::mt19937_64 random{7};
  const auto below = [&](std::uint64_t n) { return random() % n; };
  std::size_t moments = 0, gaps = 0;
  for (int round = 0; round < 400; ++round) {
    Streams streams(1 + below(4));
    std::size_t task = 0;
    for (std::vector<Stretch>& stream : streams) {
      double at = static_cast<double>(below(6));
      for (std::size_t n = below(12); n > 0; --n) {
        const double from = at + (below(3) == 0 ? static_cast<double>(below(4)) : 0.0);
        at = from + static_cast<double>(below(5));
        stream.push_back({.time = {from, at},
                          .task = task++,
                          .activity = static_cast<Activity>(below(5)),
                          .begins_task = below(4) != 0});
      }
    }
    SCOPED_TRACE(round);
    const Swept result = swept(streams, {0, 60}), expected = looked_up(streams, {0, 60});
    EXPECT_EQ(result.moments, expected.moments);
    EXPECT_EQ(result.gaps, expected.gaps);
    moments += result.moments.size();
    gaps += result.gaps.size();
  }
  EXPECT_GT(moments, 4000U);
  EXPECT_GT(gaps, 800U);
}

}  // namespace
}  // namespace stepcast::detail::moment_sweep_test
