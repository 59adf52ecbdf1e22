// Who holds a step back: GPU, host, PCIe, network, data skew or a late start, and which rank the others wait for.
//
//   const StepCulprits c = find_culprits({flat, times, costs, windows, starts});
//   c.of(Culprit::host)            // microseconds of the mean step
//   c.ranks[7].caused_wait_us      // waiting of the others for rank 7, and c.ranks[7].caused_by of it
//
// A rank's own moments count for what its GPU does or waits for (the parts of breakdown.h). A moment in which it
// waits inside a collective counts for what the rank that came last hung on at that moment: the step of the
// critical path to its arrival. So the times of a rank sum to its step.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "stepcast/analyze/flat_program.h"
#include "stepcast/analyze/task_times.h"
#include "stepcast/base/interval.h"
#include "stepcast/program/program.h"

namespace stepcast {

enum class Culprit : std::uint8_t {
  gpu,        // kernels, fills and copies on the device, dependencies between streams
  host,       // the CPU: operators, launches, hand-offs between threads, time between steps
  pcie,       // copies between host and device
  network,    // transfers of collectives
  data_skew,  // kernels of the last rank, as far as it has more work in the same operators than the median rank
  late_start,  // the last rank began its step later
  rest,        // gaps between queued kernels, work from before the step, nothing left to do
};
inline constexpr std::size_t kCulpritCount = 7;
[[nodiscard]] std::string_view to_string(Culprit culprit);
using CulpritTimes = std::array<double, kCulpritCount>;  // [Culprit], microseconds

struct RankCulprits {
  RankClassId rank_class;
  double step_us = 0;
  CulpritTimes own_us{};             // what this rank does or waits for by itself
  CulpritTimes through_others_us{};  // while it only waits for another rank: what that one hangs on
  std::uint32_t came_last = 0;       // collectives in which the others waited for it, ties left out
  double waited_us = 0;              // for others in collectives, also behind work of its own
  double caused_wait_us = 0;         // waiting of the others in collectives in which it came last
  CulpritTimes caused_by_us{};       // sums to it
};

struct StepCulprits {
  std::vector<RankCulprits> ranks;  // [rank class]
  std::uint32_t collectives = 0;    // of two ranks and more
  std::uint32_t ties = 0;           // of them: the last two arrivals are within tie_us, nobody came last
  double tie_us = 0;
  // Mean over ranks, own and through others.
  [[nodiscard]] double of(Culprit culprit) const;
  [[nodiscard]] double step_us() const;  // mean over ranks
  [[nodiscard]] double all_waiting_us() const;
  // Whom the others waited for most; null where nobody waited, or where waiting in ties could make it another rank.
  [[nodiscard]] const RankCulprits* worst() const;
};

struct CulpritInput {
  const FlatProgram& flat;
  const TaskTimes& times;
  const Costs& costs;
  std::span<const Interval> windows;      // [rank class]
  std::span<const double> rank_start_us;  // [rank class]
  double tie_us = 0;                      // arrivals so close are not told apart: clocks of ranks differ
};
[[nodiscard]] StepCulprits find_culprits(const CulpritInput& input);

}  // namespace stepcast
