// What is looked up in a recorded rank again and again, computed once per file: its steps, which operator encloses
// which, GPU work and calls by correlation. So that many steps of one file cost what their own events cost.
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

inline constexpr std::int32_t kNone = -1;

// Recorded times are integer microseconds in many files: two moments this close may be one.
inline constexpr double kClockToleranceUs = 2.0;

// The chosen step of a rank on its own clock: ProfilerStep#N, or first to last event where the file has no
// steps.
struct RecordedStep {
  std::int64_t number = -1;
  Nanoseconds start{}, end{};
  std::int32_t main_thread = -1;
};

// Every complete ProfilerStep of the file, by start.
[[nodiscard]] std::vector<RecordedStep> find_steps(const RecordedRank& recorded);
// First to last event, on the thread with most ops.
[[nodiscard]] RecordedStep whole_file(const RecordedRank& recorded);

// Positions in one of the arrays of a RecordedRank: [first, last).
struct IndexRange {
  std::size_t first = 0, last = 0;
};

// Where an operator or annotation lies among those around it on its thread, itself included.
struct OpContext {
  std::int32_t root = -1;              // the outermost
  std::int32_t comm_op = -1;           // the innermost record_param_comms; -1: none
  bool in_library_annotation = false;  // inside "nccl:*"
};

class TraceIndex {
 public:
  // `recorded` has to outlive the index.
  explicit TraceIndex(const RecordedRank& recorded);

  [[nodiscard]] const RecordedRank& recorded() const { return *recorded_; }
  [[nodiscard]] std::span<const RecordedStep> steps() const { return steps_; }
  // [cpu op] -> enclosing op on the thread, -1: none.
  [[nodiscard]] std::span<const std::int32_t> parent_of_op() const { return parent_of_op_; }
  // Of an index into RecordedRank::cpu_ops; -1: in none.
  [[nodiscard]] OpContext context_of(std::int32_t op) const {
    return op < 0 ? OpContext{} : context_of_op_[static_cast<std::size_t>(op)];
  }
  // [runtime call] -> innermost open op on its thread, -1: none.
  [[nodiscard]] std::span<const std::int32_t> op_of_call() const { return op_of_call_; }

  // Runtime calls that begin in the step.
  [[nodiscard]] IndexRange calls_of(const RecordedStep& step) const;
  // GPU work with this correlation, by start.
  [[nodiscard]] std::span<const std::pair<std::int64_t, std::int32_t>> work_of(
      std::int64_t correlation) const;
  // The last call with this correlation that is not in `except`.
  [[nodiscard]] std::optional<std::size_t> call_outside(std::int64_t correlation, IndexRange except) const;
  // The first GPU work that may still run at `time`: all before it have ended.
  [[nodiscard]] std::size_t first_work_running_at(Nanoseconds time) const;
  // True when the file shows a launch or the end of GPU work before `time`.
  [[nodiscard]] bool shows_work_before(Nanoseconds time) const {
    return first_launch_ < time || first_work_end_ <= time;
  }
  // True when a call inside the step started GPU work.
  [[nodiscard]] bool launches_gpu_work(const RecordedStep& step) const;

  // Ops of the thread that are open at `begin` or begin in [begin, end), in the order they began.
  [[nodiscard]] std::vector<std::int32_t> ops_in(std::size_t thread, Nanoseconds begin,
                                                 Nanoseconds end) const;

  // Operator with this "External id", where that names operators; -1: none.
  [[nodiscard]] std::int32_t op_with_external_id(std::int64_t id) const;

  // Of the name of a kernel of the file.
  [[nodiscard]] KernelClass kernel_class(NameId name) const { return kernel_classes_[name.index()]; }

  // GPU times that are this close may be one.
  [[nodiscard]] double clock_step_us() const { return clock_step_us_; }

 private:
  using ByNumber = std::vector<std::pair<std::int64_t, std::int32_t>>;  // sorted

  const RecordedRank* recorded_;
  std::vector<RecordedStep> steps_;
  std::vector<std::int32_t> parent_of_op_, op_of_call_;
  std::vector<OpContext> context_of_op_;
  std::vector<std::vector<std::int32_t>> ops_of_thread_;  // by start
  ByNumber calls_, work_;                                 // by correlation
  ByNumber op_of_external_id_;
  std::vector<KernelClass> kernel_classes_;  // [NameId]
  std::vector<Nanoseconds> ended_by_;        // [GPU work] latest end of it and all before it
  Nanoseconds first_launch_ = Nanoseconds::max(), first_work_end_ = Nanoseconds::max();
  double clock_step_us_ = 0;
};

}  // namespace stepcast::detail
