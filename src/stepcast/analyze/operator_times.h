// The time and the work of every operator on every rank. Shows which rank is slow in which operator, and
// whether that is due to more work or to a slower machine. Also the operators of the CPU that the GPU waits
// for.
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

// One operator of a framework. A task belongs to the innermost operator that was open when it ran or was
// launched.
struct OperatorTimes {
  std::string_view op;  // refers to the Program's names; "" is outside any operator
  // [rank class] kernels, copies and fills; communication is left out.
  std::vector<double> gpu_us{};
  // [rank class] CPU time in the operator itself, without operators inside it.
  std::vector<double> host_us{};
  std::vector<double> flops{};  // [rank class] of the work that is known
  std::vector<double> bytes{};  // [rank class] of the same work
};

// The operator of a task; "" if it is outside any operator.
[[nodiscard]] std::string_view operator_of(const Program& program, const TaskInfo& info);

// All operators, sorted by name. Tasks count with the part inside their rank's window. `times` must be
// simulated: recorded times of host calls would contain waiting.
[[nodiscard]] std::vector<OperatorTimes> operator_times(const FlatProgram& flat, const TaskTimes& times,
                                                        std::span<const Interval> windows);

// The work of a rank in an operator, divided by the work of the median rank: the larger of the ratios of
// FLOPs and of bytes. 1 if no work is known; infinite if only the median rank has none.
[[nodiscard]] double work_ratio(const OperatorTimes& op, std::size_t rank_class);

// One operator on all ranks, either on the GPU or on the host.
struct OperatorComparison {
  std::string op{};
  bool on_gpu = false;
  std::vector<double> times_us{};  // [rank class]
  double median_us = 0;
  std::size_t slowest = 0;  // rank class
  double work_ratio = 1;    // of the slowest rank, see work_ratio(); 1 on the host
  // How much longer the slowest rank takes than the median rank.
  [[nodiscard]] double excess_us() const { return times_us[slowest] - median_us; }
};

// The operators with the largest difference between the slowest and the median rank, in descending order; at
// most `most` of them (0: all). Operators that take the same time everywhere are left out. Empty for a single
// rank.
[[nodiscard]] std::vector<OperatorComparison> compare_operators(std::span<const OperatorTimes> operators,
                                                                std::size_t most);

// GPU idle time that is due to one operator of the launching thread: the GPU's next work was not launched
// yet.
struct AwaitedOperator {
  // The outermost operator ("aten::linear"), otherwise the outermost annotation; empty outside of both.
  // kThreadWaits if the launching thread does nothing itself.
  std::string op{};
  double gpu_idle_us = 0;          // summed over ranks
  std::uint64_t gaps = 0;          // number of idle gaps that it is part of
  std::vector<double> ranks_us{};  // [rank class]
};
inline constexpr const char* kThreadWaits = "(the launching thread waits)";

// All of them, longest first. They sum to the idle time with the cause IdleCause::cpu.
[[nodiscard]] std::vector<AwaitedOperator> awaited_operators(const FlatProgram& flat, const TaskTimes& times,
                                                             const Costs& costs,
                                                             std::span<const Interval> windows,
                                                             std::span<const double> rank_start_us);

}  // namespace stepcast
