// What a rank does at every moment of a window, as sets of moments: the same disjoint parts as a RankBreakdown
// (breakdown.h), with the places in time kept, so that a part of the window can be asked for.
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

// Nothing runs, and nothing waits for another rank.
struct IdleGap {
  Interval time;
  IdleCause cause = IdleCause::rest;
  std::size_t next_task = kNoTask;  // GPU work that ends it; kNoTask: the window does
};

// A stay in a collective before its last rank came, while nothing else runs on this rank.
struct RankWait {
  Interval time;
  std::size_t occurrence = 0;  // position in the collective_occurrences()
};

struct RankParts {
  Interval window;
  // Disjoint, the first of them that holds. Copies between host and device, then fills and copies on the device.
  IntervalSet computation, transfer, copies, device_copies;
  std::vector<RankWait> waits;  // ascending
  std::vector<IdleGap> gaps;    // ascending
};

// True for copies between host and device, by the names that profilers of CUDA and ROCm give them.
[[nodiscard]] bool crosses_host_link(std::string_view copy_name);

[[nodiscard]] RankParts rank_parts(const FlatProgram& flat, const TaskTimes& times, const Costs& costs,
                                   RankClassId c, Interval window, double rank_start_us,
                                   std::span<const CollectiveOccurrence> occurrences);

}  // namespace stepcast::detail
