// Attributes the time of a step to culprits: GPU, host, PCIe, network, data skew or a late start. Also finds
// the rank that the others wait for.
//
//   const StepCulprits c = find_culprits({flat, times, costs, windows, starts});
//   c.of(Culprit::host)            // microseconds of the mean step
//   c.ranks[7].caused_wait_us      // time that the others waited for rank 7; caused_by_us splits it by culprit
//
// Time in which a rank works, or waits for something on its own GPU or host, is charged to that (the parts of
// breakdown.h). Time in which it waits inside a collective is charged to whatever delayed the last rank to
// arrive at that moment, which is the step of the critical path to that arrival. So the times of a rank sum
// to its step.
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

// The causes that time is charged to.
enum class Culprit : std::uint8_t {
  gpu,      // kernels, fills and copies on the device, dependencies between streams
  host,     // the CPU: operators, launches, hand-offs between threads, time between steps
  pcie,     // copies between host and device
  network,  // transfers of collectives
  // Kernels of the last rank, in so far as it has more work in the same operators than the median rank.
  data_skew,
  // The last rank began its step later than the first one.
  late_start,
  rest,  // gaps between queued kernels, work from before the step, no work left
};
inline constexpr std::size_t kCulpritCount = 7;
[[nodiscard]] std::string_view to_string(Culprit culprit);
using CulpritTimes = std::array<double, kCulpritCount>;  // [Culprit], microseconds

// The times of one rank, in microseconds.
struct RankCulprits {
  RankClassId rank_class;
  double step_us = 0;
  // What the rank itself does or waits for.
  CulpritTimes own_us{};
  // While it only waits for another rank: the cause of the other rank's delay.
  CulpritTimes through_others_us{};
  // The number of collectives in which the others waited for this rank, without ties.
  std::uint32_t came_last = 0;
  // Time waited for others in collectives, including time hidden behind work of this rank.
  double waited_us = 0;
  double caused_wait_us = 0;    // time the others waited in collectives in which it arrived last
  CulpritTimes caused_by_us{};  // caused_wait_us by culprit
};

// The result for all ranks of a step.
struct StepCulprits {
  std::vector<RankCulprits> ranks;  // [rank class]
  std::uint32_t collectives = 0;    // number of collectives with at least two ranks
  // Ties: collectives in which the last two arrivals are within tie_us of each other, so no rank counts as
  // the last.
  std::uint32_t ties = 0;
  double tie_us = 0;
  // The time charged to a culprit, own and through others, as the mean over ranks.
  [[nodiscard]] double of(Culprit culprit) const;
  [[nodiscard]] double step_us() const;  // mean over ranks
  // The time that all ranks waited in collectives.
  [[nodiscard]] double all_waiting_us() const;
  // The rank that the others waited for most. A null pointer if no rank waited, or if the waiting in ties is
  // large enough to make it another rank.
  [[nodiscard]] const RankCulprits* worst() const;
};

struct CulpritInput {
  const FlatProgram& flat;
  const TaskTimes& times;
  const Costs& costs;
  std::span<const Interval> windows;      // [rank class]
  std::span<const double> rank_start_us;  // [rank class]
  // Arrivals closer than this are ties, because the clocks of recorded ranks differ by about as much.
  double tie_us = 0;
};
// Finds the culprits of a step. The most expensive part is one backward walk over the critical path per
// collective.
[[nodiscard]] StepCulprits find_culprits(const CulpritInput& input);

}  // namespace stepcast
