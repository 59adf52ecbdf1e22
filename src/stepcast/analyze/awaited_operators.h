// Which operators of the CPU the GPU waits for: what the launching thread does while nothing runs on the GPU
// because the next work has not been launched yet.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "stepcast/analyze/flat_program.h"
#include "stepcast/analyze/task_times.h"
#include "stepcast/base/interval.h"
#include "stepcast/program/program.h"

namespace stepcast {

struct AwaitedOperator {
  // The outermost operator ("aten::linear"), else the outermost annotation. Empty: outside of both. Where the
  // launching thread does nothing itself: kThreadWaits.
  std::string op{};
  double gpu_idle_us = 0;          // summed over ranks
  std::uint64_t gaps = 0;          // stretches of idle time that it is part of
  std::vector<double> ranks_us{};  // [rank class]
};
inline constexpr const char* kThreadWaits = "(the launching thread waits)";

// Longest first. They sum to the idle time that waits for the CPU (IdleCause::cpu).
[[nodiscard]] std::vector<AwaitedOperator> awaited_operators(const FlatProgram& flat, const TaskTimes& times,
                                                             const Costs& costs,
                                                             std::span<const Interval> windows,
                                                             std::span<const double> rank_start_us);

}  // namespace stepcast
