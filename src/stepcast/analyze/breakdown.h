// Breakdown of the time of a window: per rank, per GPU stream and per CPU thread.
//
// The parts of a rank are disjoint and sum to the window. At every moment the rank is in the first of these
// states that applies:
//
//   computation      a kernel other than communication runs on some stream
//   exposed_comm     a collective transfers
//   exposed_memcpy   a copy or fill runs
//   idle             other_rank: a collective waits for a rank that has not arrived. Otherwise nothing runs, and
//                    the cause is what the next work of the rank waits for: the CPU, another stream, another
//                    pipeline stage, or the rest. A receive that waits for its sender is not a cause: it may be
//                    posted long before its data is needed
//
//   rank 0  |====gemm====|        |==elementwise==|
//           |    |--wait--|~~transfer~~~~~~~|
//                         ^idle   ^exposed  ^hidden
//                          .other_rank
//
// The parts of a stream (kernels by class, transfers, copies, idle by cause) are disjoint, too, and sum to
// the window.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "stepcast/analyze/binding.h"
#include "stepcast/analyze/flat_program.h"
#include "stepcast/analyze/task_times.h"
#include "stepcast/base/interval.h"
#include "stepcast/operation/kernel_class.h"
#include "stepcast/program/program.h"

namespace stepcast {

// Idle time in microseconds, by cause.
struct IdleTime {
  std::array<double, kIdleCauseCount> by_cause_us{};
  [[nodiscard]] double of(IdleCause cause) const { return by_cause_us[static_cast<std::size_t>(cause)]; }
  void add(IdleCause cause, double time_us) { by_cause_us[static_cast<std::size_t>(cause)] += time_us; }
  [[nodiscard]] double total_us() const;
};

using ClassTimes = std::array<double, kKernelClassCount>;  // [KernelClass], microseconds

// The time of one GPU stream inside the window, in microseconds.
struct StreamBreakdown {
  std::uint16_t lane = 0;  // lane of the rank class
  std::string name;
  ClassTimes kernels_us{};       // computation by class
  double computation_us = 0;     // sum of kernels_us
  double transfer_us = 0;        // collectives, without waiting for other ranks
  double memcpy_us = 0;          // copies and fills
  double exposed_comm_us = 0;    // transfer while no stream of the rank computes
  double exposed_memcpy_us = 0;  // copies and fills while no stream of the rank computes
  IdleTime idle;
  std::uint64_t tasks = 0;  // tasks that touch the window
};

// The GPU or CPU time of one operator, and the number of its tasks.
struct OpTime {
  std::string name;
  double time_us = 0;
  std::uint64_t tasks = 0;
};

// The time of one CPU thread inside the window.
struct ThreadBreakdown {
  std::uint16_t lane = 0;
  std::string name;
  double busy_us = 0;
  // Busy time by outermost framework operator or annotation, longest first. "" is the time outside of any
  // operator.
  std::vector<OpTime> busy_by_op;
  IdleTime idle;  // causes gpu, other_thread, rest
};

// The time of one rank. Its window is computation_us + exposed_comm_us + exposed_memcpy_us + idle.
struct RankBreakdown {
  RankClassId rank_class;
  Interval window;
  double computation_us = 0;  // union over streams
  double exposed_comm_us = 0;
  double exposed_memcpy_us = 0;
  // Computation by class and exposed communication by group. They sum to computation_us and exposed_comm_us:
  // kernels, or transfers, that run at the same time share that time.
  ClassTimes class_us{};
  std::vector<double> exposed_by_group_us;  // [GroupId + 1]; 0: transfers of unknown groups
  // With the causes cpu, other_stream, other_rank, pipeline, between_steps, rest.
  IdleTime idle;
  // Sum over streams: time in which two streams compute is counted twice.
  ClassTimes kernels_us{};
  double transfer_us = 0;         // union over streams of the transfers of collectives
  double collective_wait_us = 0;  // union over streams of their waiting
  // Transfer hidden behind computation: transfer_us - exposed_comm_us.
  double overlap_us = 0;
  double gpu_active_us = 0;  // time with computation, transfer or copy on any stream
  std::vector<StreamBreakdown> streams;
  std::vector<ThreadBreakdown> threads;
};

// `windows`: one per rank class. `rank_start_us`: when the lanes of each class became free. Rank classes are
// spread over the threads of the machine if there is enough work. `only`: compute the breakdown of this class
// alone.
[[nodiscard]] std::vector<RankBreakdown> break_down(const FlatProgram& flat, const TaskTimes& times,
                                                    const Costs& costs, std::span<const Interval> windows,
                                                    std::span<const double> rank_start_us,
                                                    std::optional<RankClassId> only = {});

// The breakdown of a body (program/task_bodies.h), which is a rank class of `flat`: parts, pieces, and when
// its lanes are busy. `before_us`: a time before the start of the body.
struct BodyProfile;
void break_down_body(const FlatProgram& flat, const TaskTimes& times, const Costs& costs, RankClassId body,
                     Interval window, double before_us, BodyProfile& profile);

// For every class, the window from the start of the rank to the end of its last task.
[[nodiscard]] std::vector<Interval> whole_windows(const FlatProgram& flat, const TaskTimes& times,
                                                  std::span<const double> rank_start_us);

}  // namespace stepcast
