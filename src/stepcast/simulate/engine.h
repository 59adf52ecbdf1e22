// The engine: one pass over the DAG of all ranks in one process.
//
// Plan::compile orders the work once (which stretch of which instance after which collective); simulate() then sweeps it.
// Same Program and Costs in, same bytes out; the order of ranks changes nothing.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "stepcast/base/interval.h"
#include "stepcast/base/quantity.h"
#include "stepcast/base/result.h"
#include "stepcast/program/program.h"

namespace stepcast {

// A task of one rank: `rank` counts the ranks of the class (0 .. multiplicity - 1), `repetition` the runs of the instance.
struct TaskRef {
  RankClassId rank_class;
  std::uint32_t rank = 0;
  InstanceId instance;
  std::uint32_t repetition = 0;
  TaskId task;
  auto operator<=>(const TaskRef&) const = default;
};

struct SimulateOptions {
  // Every rank on its own instead of one per class. With equal start offsets within a class the times are the same.
  bool unfold = false;
  // When a rank's lanes become free, in order of classes and, unfolded, of ranks inside them; empty: all 0.
  // Folded: one per class.
  std::vector<double> start_offset_us;
};

// Start and end of every task, and the state of every lane at the end.
class Timeline {
 public:
  // `rank` is ignored when folded.
  [[nodiscard]] Interval at(const TaskRef& t) const;
  // All tasks of one instance run, in block order.
  [[nodiscard]] std::span<const Interval> instance(RankClassId c, std::uint32_t rank, InstanceId i,
                                                   std::uint32_t repetition = 0) const;
  // End of the last task of a rank.
  [[nodiscard]] double rank_end_us(RankClassId c, std::uint32_t rank = 0) const;
  // Latest end over all ranks.
  [[nodiscard]] double end_us() const;
  // [lane] -> free from, after the last instance.
  [[nodiscard]] std::span<const double> lane_free_us(RankClassId c, std::uint32_t rank = 0) const;
  [[nodiscard]] bool unfolded() const { return unfolded_; }
  [[nodiscard]] double start_offset_us(RankClassId c, std::uint32_t rank = 0) const;
  [[nodiscard]] std::size_t memory_bytes() const;

 private:
  friend class Plan;
  bool unfolded_ = false;
  std::vector<Interval> intervals_;
  std::vector<std::vector<std::size_t>> instance_base_;  // [class][instance] -> offset within a rank
  std::vector<std::size_t> rank_base_;                   // [class] -> offset of its first rank
  std::vector<std::size_t> rank_size_;                   // [class] -> intervals of one rank
  std::vector<std::uint32_t> rank_copies_;               // [class] -> 1 when folded
  std::vector<std::uint32_t> task_count_storage_;        // see engine.cpp
  std::vector<double> lane_free_;
  std::vector<double> start_offsets_;
  std::vector<std::size_t> state_base_, offset_base_, state_size_, lane_count_;
};

class Plan {
 public:
  // Fails with the same sentences as Program::check.
  [[nodiscard]] static Result<Plan> compile(const Program& program);

  // Structure (from the Program of compile, which must outlive the plan) and costs to times. Errors: start offsets of the
  // wrong number.
  [[nodiscard]] Result<Timeline> simulate(const Costs& costs, const SimulateOptions& options = {}) const;

  // Only the lanes' final times: no timeline is stored (memory for one instance per rank class copy). Layout of the result as
  // Timeline::lane_free_us, concatenated over ranks.
  // (Used by searches.)

 private:
  struct Step {  // a stretch of one instance between points where it meets other ranks
    std::uint32_t rank_class, instance;
    std::uint32_t first_task, end_task;
    std::uint32_t complete;  // collective to complete before this step, or 0xffffffff
  };
  const Program* program_ = nullptr;
  std::vector<Step> steps_;
};

}  // namespace stepcast
