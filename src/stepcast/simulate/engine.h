// The engine: one pass over the DAG of all ranks in one process.
//
// Plan::compile orders the work once (which stretch of which instance after which collective); simulate()
// then sweeps it. Same Program and Costs in, same bytes out; the order of ranks changes nothing.
//
//   Result<Plan> plan = Plan::compile(program);
//   Costs costs{program};
//   Result<Timeline> timeline = plan->simulate(costs);
//   double step_us = timeline->end_us();
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "stepcast/base/quantity.h"
#include "stepcast/base/result.h"
#include "stepcast/program/execution_order.h"
#include "stepcast/program/program.h"
#include "stepcast/simulate/scenarios.h"
#include "stepcast/simulate/timeline_store.h"

namespace stepcast {

namespace detail {
class Sweep;
template <std::size_t kWidth>
class ScenarioSweep;
}  // namespace detail

// A task of one rank: `rank` counts the ranks of the class (0 .. multiplicity - 1).
struct TaskRef {
  RankClassId rank_class{};
  std::uint32_t rank = 0;
  InstanceId instance{};
  TaskId task{};
  auto operator<=>(const TaskRef&) const = default;
};

struct SimulateOptions {
  // Every rank on its own instead of one per class. With equal start offsets within a class the times are the
  // same.
  bool unfold = false;
  // When a rank's lanes become free, in order of classes and, unfolded, of ranks inside them; empty: all 0.
  // Folded: one per class.
  std::vector<double> start_offset_us{};
  // A larger Timeline is an error and not a machine without memory.
  std::size_t max_timeline_bytes = std::size_t{16} << 30;
};

// Start and end of every task, and the state of every lane at the end. Of a collective task the start is when
// the rank arrives and the end when it leaves. Accessors take what exists: a class, instance and task of the
// Program.
class Timeline {
 public:
  // `rank` is ignored when folded.
  [[nodiscard]] Interval at(const TaskRef& t) const {
    return instance(t.rank_class, t.rank, t.instance)[t.task.index()];
  }
  // All tasks of one instance, in block order.
  [[nodiscard]] std::span<const Interval> instance(RankClassId c, std::uint32_t rank, InstanceId i) const;
  // End of the last task of a rank.
  [[nodiscard]] double rank_end_us(RankClassId c, std::uint32_t rank = 0) const;
  // Latest end over all ranks.
  [[nodiscard]] double end_us() const;
  // [lane] -> free from, after the last instance.
  [[nodiscard]] std::span<const double> lane_free_us(RankClassId c, std::uint32_t rank = 0) const;
  [[nodiscard]] bool unfolded() const { return unfolded_; }
  [[nodiscard]] double start_offset_us(RankClassId c, std::uint32_t rank = 0) const;
  // Ranks of the class that have times of their own: 1 when folded.
  [[nodiscard]] std::uint32_t copies(RankClassId c) const { return places_[c.index()].copies; }
  [[nodiscard]] std::size_t memory_bytes() const;

 private:
  friend class Plan;
  friend class detail::Sweep;
  struct Place {  // of a rank class
    std::size_t first_interval = 0, first_lane = 0, first_rank = 0;
    std::uint32_t copies = 1;
  };
  [[nodiscard]] std::uint32_t copy_of(RankClassId c, std::uint32_t rank) const {
    return places_[c.index()].copies == 1 ? 0 : rank;
  }
  bool unfolded_ = false;
  std::shared_ptr<const detail::TimelineLayout> layout_;
  detail::IntervalStore intervals_;
  std::vector<Place> places_;         // [class]
  std::vector<double> lane_free_;     // [class, rank, lane]
  std::vector<double> start_offset_;  // [class, rank]
};

class Plan {
 public:
  // Fails with the same sentences as Program::check.
  [[nodiscard]] static Result<Plan> compile(const Program& program);

  // Structure (the Program's blocks as they were at compile; it must outlive the plan) and costs to times.
  // Errors: costs of another Program, a duration or delay that is negative or not finite, start offsets of
  // the wrong number, a timeline above the limit.
  [[nodiscard]] Result<Timeline> simulate(const Costs& costs, const SimulateOptions& options = {}) const;
  // The same into a Timeline whose memory is used again: for many scenarios in a row.
  [[nodiscard]] Status simulate(const Costs& costs, const SimulateOptions& options, Timeline& timeline) const;

  // Ends of many scenarios, swept eight at a time over one structure, with the bits that simulate() gives for
  // each alone. Errors: as simulate(), with the number of the scenario; a watched moment of no task; more than
  // `max_bytes` for the times of the eight.
  [[nodiscard]] Result<ScenarioEnds> simulate(std::span<const Costs> scenarios,
                                              const ScenarioOptions& options = {}) const;

  // Memory of the plan itself, without the Program.
  [[nodiscard]] std::size_t memory_bytes() const;

 private:
  friend class detail::Sweep;
  template <std::size_t kWidth>
  friend class detail::ScenarioSweep;
  struct Member {  // of a collective
    std::uint32_t rank_class = 0, block = 0, task = 0;
    std::uint32_t lane = 0;    // of the class
    std::size_t interval = 0;  // within a rank
  };
  struct Lanes {            // of an instance
    bool as_class = true;   // block lane n is lane n of the class
    std::size_t first = 0;  // into bound_lanes_ otherwise
  };
  Plan() = default;
  [[nodiscard]] Status prepare(const SimulateOptions& options, Timeline& timeline) const;

  const Program* program_ = nullptr;
  ExecutionOrder order_;
  std::shared_ptr<const detail::TimelineLayout> layout_;
  std::vector<Lanes> lanes_;  // [instance, numbered through]
  std::vector<std::uint16_t> bound_lanes_;
  std::vector<std::size_t> first_member_;  // [collective], one more at the end
  std::vector<Member> members_;
  std::size_t max_block_lanes_ = 0;
};

}  // namespace stepcast
