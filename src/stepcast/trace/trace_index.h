// Lookup tables for a recorded rank, computed once per file: steps, enclosing operators, GPU work and calls
// by correlation. Processing many steps of one file then costs only their events.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "stepcast/operation/kernel_class.h"
#include "stepcast/trace/recorded_rank.h"

namespace stepcast::detail {

// No position.
inline constexpr std::int32_t kNone = -1;

// Recorded times are integer microseconds in many files: two moments this close may be one.
// Microseconds. Many files have times in whole microseconds, so two times with at most this difference can be
// equal.
inline constexpr double kClockToleranceUs = 2.0;

// A step of a rank on the clock of its file: ProfilerStep#N, or all events if the file has no steps.
struct RecordedStep {
  std::int64_t number = -1;
  Nanoseconds start{}, end{};
  std::int32_t main_thread = -1;
};

// All complete ProfilerSteps of the file, ordered by start.
[[nodiscard]] std::vector<RecordedStep> find_steps(const RecordedRank& recorded);
// The step from the first to the last event, on the thread with most operators.
[[nodiscard]] RecordedStep whole_file(const RecordedRank& recorded);

// Positions in one of the arrays of a RecordedRank: [first, last).
struct IndexRange {
  std::size_t first = 0, last = 0;
};

// The position of an operator or annotation in the nesting on its thread, including itself.
struct OpContext {
  std::int32_t root = -1;              // outermost operator
  std::int32_t comm_op = -1;           // innermost record_param_comms; -1: none
  bool in_library_annotation = false;  // inside "nccl:*"
};

// The tables of one file.
class TraceIndex {
 public:
  // `recorded` must outlive the index.
  explicit TraceIndex(const RecordedRank& recorded);

  // The rank of this index.
  [[nodiscard]] const RecordedRank& recorded() const { return *recorded_; }
  // find_steps() of the rank.
  [[nodiscard]] std::span<const RecordedStep> steps() const { return steps_; }
  // [CPU operator] enclosing operator on its thread; -1: none.
  [[nodiscard]] std::span<const std::int32_t> parent_of_op() const { return parent_of_op_; }
  // The context of an index into RecordedRank::cpu_ops; empty for -1.
  [[nodiscard]] OpContext context_of(std::int32_t op) const {
    return op < 0 ? OpContext{} : context_of_op_[static_cast<std::size_t>(op)];
  }
  // [runtime call] innermost open operator on its thread; -1: none.
  [[nodiscard]] std::span<const std::int32_t> op_of_call() const { return op_of_call_; }

  // Runtime calls that start inside the step.
  [[nodiscard]] IndexRange calls_of(const RecordedStep& step) const;
  // GPU work with this correlation as (correlation, position), by start.
  [[nodiscard]] std::span<const std::pair<std::int64_t, std::int32_t>> work_of(
      std::int64_t correlation) const;
  // The last call with this correlation that is not in `except`.
  [[nodiscard]] std::optional<std::size_t> call_outside(std::int64_t correlation, IndexRange except) const;
  // The first GPU work that may still run at `time`: everything before it has ended.
  [[nodiscard]] std::size_t first_work_running_at(Nanoseconds time) const;
  // True if the file has a launch, or the end of GPU work, before `time`.
  [[nodiscard]] bool shows_work_before(Nanoseconds time) const {
    return first_launch_ < time || first_work_end_ <= time;
  }
  // True if a call inside the step starts GPU work.
  [[nodiscard]] bool launches_gpu_work(const RecordedStep& step) const;

  // Operators of a thread that are open at `begin` or start in [begin, end), in the order of their start.
  [[nodiscard]] std::vector<std::int32_t> ops_in(std::size_t thread, Nanoseconds begin,
                                                 Nanoseconds end) const;

  // The operator with this "External id", if ids name operators in this file; -1: none.
  [[nodiscard]] std::int32_t op_with_external_id(std::int64_t id) const;

  // The class of a kernel by its name.
  [[nodiscard]] KernelClass kernel_class(NameId name) const { return kernel_classes_[name.index()]; }

  // Resolution of GPU times in microseconds: times with at most this difference may be equal.
  [[nodiscard]] double clock_step_us() const { return clock_step_us_; }

 private:
  using ByNumber = std::vector<std::pair<std::int64_t, std::int32_t>>;  // sorted (number, position)

  const RecordedRank* recorded_;
  std::vector<RecordedStep> steps_;
  std::vector<std::int32_t> parent_of_op_, op_of_call_;
  std::vector<OpContext> context_of_op_;
  std::vector<std::vector<std::int32_t>> ops_of_thread_;  // [thread] by start
  ByNumber calls_, work_;                                 // by correlation
  ByNumber op_of_external_id_;
  std::vector<KernelClass> kernel_classes_;  // [NameId]
  std::vector<Nanoseconds> ended_by_;        // [GPU work] latest end of it and all earlier work
  Nanoseconds first_launch_ = Nanoseconds::max(), first_work_end_ = Nanoseconds::max();
  double clock_step_us_ = 0;
};

}  // namespace stepcast::detail
