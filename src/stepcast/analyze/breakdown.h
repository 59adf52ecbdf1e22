// Where the time of a window goes: per rank, per GPU stream, per CPU thread.
//
// The parts of a rank are disjoint and sum to the window. At every moment a rank is doing the first of these
// that holds:
//
//   computation      a kernel that is no communication runs on some stream
//   exposed_comm     a collective transfers
//   exposed_memcpy   a copy or fill runs
//   idle             other_rank: a collective waits for a rank that has not arrived; otherwise nothing
//                    runs, and the cause is what the next work of the rank waits for: the cpu, another
//                    stream, another pipeline stage, or the rest. A receive that waits for its sender is
//                    not a cause by itself, since it may be posted long before anybody needs it
//
//   rank 0  |====gemm====|        |==elementwise==|
//           |    |--wait--|~~transfer~~~~~~~|
//                         ^idle   ^exposed  ^hidden
//                          .other_rank
//
// A stream's own parts (kernels by class, transfers, copies, idle by cause) are disjoint and sum to the
// window too.
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

struct IdleTime {
  std::array<double, kIdleCauseCount> by_cause_us{};
  [[nodiscard]] double of(IdleCause cause) const { return by_cause_us[static_cast<std::size_t>(cause)]; }
  void add(IdleCause cause, double time_us) { by_cause_us[static_cast<std::size_t>(cause)] += time_us; }
  [[nodiscard]] double total_us() const;
};

using ClassTimes = std::array<double, kKernelClassCount>;  // [KernelClass], microseconds

struct StreamBreakdown {
  std::uint16_t lane = 0;  // of the rank class
  std::string name;
  ClassTimes kernels_us{};       // computation by class
  double computation_us = 0;     // their sum
  double transfer_us = 0;        // collectives, without waiting for other ranks
  double memcpy_us = 0;          // copies and fills
  double exposed_comm_us = 0;    // transfer while no stream of the rank computes
  double exposed_memcpy_us = 0;  // copies and fills while no stream of the rank computes
  IdleTime idle;
  std::uint64_t tasks = 0;  // tasks that touch the window
};

struct OpTime {
  std::string name;
  double time_us = 0;
  std::uint64_t tasks = 0;
};

struct ThreadBreakdown {
  std::uint16_t lane = 0;
  std::string name;
  double busy_us = 0;
  // GPU time by outermost framework op or annotation, longest first; "" is outside any.
  std::vector<OpTime> busy_by_op;
  IdleTime idle;  // causes gpu, other_thread, rest
};

struct RankBreakdown {
  RankClassId rank_class;
  Interval window;
  double computation_us = 0;  // union over streams
  double exposed_comm_us = 0;
  double exposed_memcpy_us = 0;
  // The computation by class and the exposed communication by group: they sum to the two above. Kernels, or
  // transfers, that run at the same time share that time.
  ClassTimes class_us{};
  std::vector<double> exposed_by_group_us;  // [GroupId + 1]; 0: a transfer whose group is not known
  IdleTime idle;                  // causes cpu, other_stream, other_rank, pipeline, between_steps, rest
  ClassTimes kernels_us{};        // summed over streams: streams that compute at the same time count twice
  double transfer_us = 0;         // union of collectives' transfers over streams
  double collective_wait_us = 0;  // union of their waiting
  double overlap_us = 0;          // transfer under computation: transfer_us - exposed_comm_us
  double gpu_active_us = 0;       // computation, transfer or copy on any stream
  std::vector<StreamBreakdown> streams;
  std::vector<ThreadBreakdown> threads;
};

// `windows` holds one window per rank class; `rank_start_us` when its lanes became free. Rank classes are
// spread over the threads of the machine where there is enough work for them. `only`: the breakdown of this one alone.
[[nodiscard]] std::vector<RankBreakdown> break_down(const FlatProgram& flat, const TaskTimes& times,
                                                    const Costs& costs, std::span<const Interval> windows,
                                                    std::span<const double> rank_start_us,
                                                    std::optional<RankClassId> only = {});

// Of a body (program/task_bodies.h), which is a class of `flat` by itself: parts, pieces and when its lanes are busy.
// `before_us`: some time before its start.
struct BodyProfile;
void break_down_body(const FlatProgram& flat, const TaskTimes& times, const Costs& costs, RankClassId body,
                     Interval window, double before_us, BodyProfile& profile);

// From the rank's start to the end of its last task, for every class.
[[nodiscard]] std::vector<Interval> whole_windows(const FlatProgram& flat, const TaskTimes& times,
                                                  std::span<const double> rank_start_us);

}  // namespace stepcast
