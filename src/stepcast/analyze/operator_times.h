// What every operator takes on every rank, and how much work it has there: who is slow in what, and whether it
// is the work or the machine. And which operators of the CPU the GPU waits for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "stepcast/analyze/flat_program.h"
#include "stepcast/analyze/task_times.h"
#include "stepcast/base/interval.h"
#include "stepcast/program/program.h"

namespace stepcast {

// One operator of a framework: the innermost that is open when the task runs, or launches it.
struct OperatorTimes {
  std::string_view op;            // in the Program's names; "" is outside any
  std::vector<double> gpu_us{};   // [rank class] its kernels, copies and fills, communication left out
  std::vector<double> host_us{};  // [rank class] CPU time in it and in no operator inside it
  std::vector<double> flops{};    // [rank class] of its work that is known
  std::vector<double> bytes{};    // [rank class]
};

// "" for a task outside any operator.
[[nodiscard]] std::string_view operator_of(const Program& program, const TaskInfo& info);

// Parts of tasks inside their rank's window; in the order of the names. `times` are simulated, so no waiting is in
// them.
[[nodiscard]] std::vector<OperatorTimes> operator_times(const FlatProgram& flat, const TaskTimes& times,
                                                        std::span<const Interval> windows);

// The work of a rank in an operator over that of the median rank: of FLOPs and bytes the larger ratio. 1 where no
// work is known; infinite where the median rank has none.
[[nodiscard]] double work_ratio(const OperatorTimes& op, std::size_t rank_class);

// One operator on all ranks, on the GPU or on the host.
struct OperatorComparison {
  std::string op{};
  bool on_gpu = false;
  std::vector<double> times_us{};  // [rank class]
  double median_us = 0;
  std::size_t slowest = 0;  // rank class
  double work_ratio = 1;    // of the slowest rank, see above; 1 on the host
  [[nodiscard]] double excess_us() const { return times_us[slowest] - median_us; }
};

// Those in which the slowest rank is furthest from the median one, by time; `most` of them (0: all). Operators that
// take equally long everywhere are left out, and all where there is one rank.
[[nodiscard]] std::vector<OperatorComparison> compare_operators(std::span<const OperatorTimes> operators,
                                                                std::size_t most);

// What the launching thread does while nothing runs on the GPU because the next work has not been launched yet.
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
