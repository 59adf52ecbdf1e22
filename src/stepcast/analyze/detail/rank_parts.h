// The activity of a rank over a window, as sets of times. The same disjoint parts as a RankBreakdown
// (breakdown.h), but with their positions in time, so that any part of the window can be queried.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "stepcast/analyze/binding.h"
#include "stepcast/analyze/collective_list.h"
#include "stepcast/analyze/detail/interval_set.h"
#include "stepcast/analyze/flat_program.h"
#include "stepcast/analyze/task_times.h"

namespace stepcast::detail {

// A time in which nothing runs and the rank does not wait inside a collective.
struct IdleGap {
  Interval time;
  IdleCause cause = IdleCause::rest;
  std::size_t next_task = kNoTask;  // the GPU work that ends it; kNoTask: the end of the window
};

// A time inside a collective before its last rank has arrived, while nothing else runs on this rank.
struct RankWait {
  Interval time;
  std::size_t occurrence = 0;  // index into collective_occurrences()
};

// The parts of one rank. Together with waits and gaps they cover the window.
struct RankParts {
  Interval window;
  // Disjoint, by priority in this order. `copies` are between host and device; `device_copies` are fills and
  // copies on the device.
  IntervalSet computation, transfer, copies, device_copies;
  std::vector<RankWait> waits;  // ascending
  std::vector<IdleGap> gaps;    // ascending
};

// Whether a copy is between host and device, by the names that the profilers of CUDA and ROCm use.
[[nodiscard]] bool crosses_host_link(std::string_view copy_name);

// The parts of rank class `c`. `occurrences` must be those of the same times.
[[nodiscard]] RankParts rank_parts(const FlatProgram& flat, const TaskTimes& times, const Costs& costs,
                                   RankClassId c, Interval window, double rank_start_us,
                                   std::span<const CollectiveOccurrence> occurrences);

}  // namespace stepcast::detail
