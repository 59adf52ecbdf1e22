// The baseline of the published method: no CPU, no synchronisation, no dependencies. The step takes as long
// as the busiest GPU stream. Work that was launched before the window (EdgeOrigin::recorded_offset) belongs
// to another step and does not count.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "stepcast/program/program.h"

namespace stepcast {

struct StreamBaseline {
  double time_us = 0;  // largest sum of durations of one stream's tasks; a collective counts as its transfer
  RankClassId rank_class;  // whose stream; the first of several
  std::uint16_t lane = 0;
};

[[nodiscard]] StreamBaseline stream_baseline(const Program& program, const Costs& costs);
// The same for one rank class.
[[nodiscard]] StreamBaseline stream_baseline(const Program& program, const Costs& costs, RankClassId c);
// [lane of the class] what the tasks of instances [begin, end) sum to that count for it; 0 for CPU threads.
struct InstanceRange {
  std::size_t begin = 0, end = 0;
};
[[nodiscard]] std::vector<double> stream_times_us(const Program& program, const Costs& costs, RankClassId c,
                                                  InstanceRange instances);

}  // namespace stepcast
