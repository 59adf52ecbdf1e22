// The baseline of published work on replays: no CPU, no synchronisation, no dependencies. The step takes as
// long as the busiest GPU stream. Work launched before the window (EdgeOrigin::recorded_offset) belongs to
// another step and is not counted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "stepcast/program/program.h"

namespace stepcast {

// The busiest GPU stream.
struct StreamBaseline {
  // The sum of the durations of the stream's tasks. A collective is counted with its transfer time.
  double time_us = 0;
  RankClassId rank_class;  // the class of the stream; the first one if several are tied
  std::uint16_t lane = 0;
};

// The largest baseline over all rank classes.
[[nodiscard]] StreamBaseline stream_baseline(const Program& program, const Costs& costs);
// The same for one rank class.
[[nodiscard]] StreamBaseline stream_baseline(const Program& program, const Costs& costs, RankClassId c);
// The sums of counted task durations of instances [begin, end) in microseconds, by lane of the class. 0 for
// CPU threads.
struct InstanceRange {
  std::size_t begin = 0, end = 0;
};
[[nodiscard]] std::vector<double> stream_times_us(const Program& program, const Costs& costs, RankClassId c,
                                                  InstanceRange instances);

}  // namespace stepcast
