// A flat view of a Program: the tasks of each rank class, numbered consecutively across its block instances.
//
// Analyses ask the same questions of every task: on which lane is it, what precedes it on the lane, what else
// did it wait for. A FlatProgram answers them across instances: an in-port leads to the task of the earlier
// instance that last wrote its slot.
//
//   const FlatProgram flat{program};
//   for (std::size_t t = 0; t < flat.task_count(c); ++t) {
//     flat.for_each_source(c, t, costs, [&](const FlatSource& s) { ...s.task, s.delay_us, s.info.origin... });
//   }
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "stepcast/base/interval.h"
#include "stepcast/program/program.h"
#include "stepcast/simulate/engine.h"

namespace stepcast {

// The flat number of no task.
inline constexpr std::size_t kNoTask = std::numeric_limits<std::size_t>::max();

// A dependency of a task. `task` is the flat number of the source; kNoTask means the start of the rank. The
// delay of the edge is in microseconds.
struct FlatSource {
  EdgeInfo info;
  std::size_t task = kNoTask;
  bool from_end = true;  // depends on the end of `task`, otherwise on its start
  double delay_us = 0;
};

class BodyProfiles;

// Immutable after construction, so it can be shared by threads. Data of a block is stored once for all of its
// instances.
class FlatProgram {
 public:
  // `program` must outlive this object and must have passed Program::check. `bodies` must outlive it, too; it
  // says which tasks represent a body. Such a task is visited on every lane that its body uses, but belongs
  // to its own lane otherwise.
  explicit FlatProgram(const Program& program, const BodyProfiles* bodies = nullptr);

  [[nodiscard]] const Program& program() const { return *program_; }
  [[nodiscard]] const BodyProfiles* bodies() const { return bodies_; }
  // The number of rank classes, and of tasks in one of them.
  [[nodiscard]] std::size_t class_count() const { return classes_.size(); }
  [[nodiscard]] std::size_t task_count(RankClassId c) const { return classes_[c.index()].task_count; }

  // The number of threads for parallel_for(): 1 if there are too few tasks for threads to pay off, otherwise
  // 0 (all).
  [[nodiscard]] unsigned threads() const;

  // Conversions between flat numbers and references. ref() is for rank 0 of the class.
  [[nodiscard]] TaskRef ref(RankClassId c, std::size_t flat) const;
  [[nodiscard]] std::size_t flat(const TaskRef& t) const;
  // The description of a task. Finding its instance takes a few steps, see kTasksPerMark.
  [[nodiscard]] const TaskInfo& info(RankClassId c, std::size_t flat) const;
  // The lane of the rank class (block lanes are mapped by the instance).
  [[nodiscard]] std::uint16_t lane(RankClassId c, std::size_t flat) const;
  [[nodiscard]] const Lane& lane_of(RankClassId c, std::size_t flat) const {
    return program_->rank_class(c).lanes[lane(c, flat)];
  }
  // The duration of a task in microseconds.
  [[nodiscard]] double duration_us(RankClassId c, std::size_t flat, const Costs& costs) const;
  // The tasks of one lane in the order in which they run.
  [[nodiscard]] std::vector<std::size_t> lane_tasks(RankClassId c, std::uint16_t lane) const;
  // Calls visit(flat number, TaskInfo) for these tasks. Faster than calling info() for each of them.
  template <class Visit>
  void for_each_on_lane(RankClassId c, std::uint16_t lane, Visit&& visit) const {
    for_each_on_lane(
        c, lane, [](std::size_t /*last*/) { return false; }, visit);
  }
  // The same without instances for which skip(flat number of the last task on the lane) is true.
  template <class Skip, class Visit>
  void for_each_on_lane(RankClassId c, std::uint16_t lane, const Skip& skip, Visit&& visit) const {
    for (const InstanceTasks& of : classes_[c.index()].instances) {
      const std::vector<std::uint16_t>& bound = program_->rank_class(c).instances[of.instance].lanes;
      const std::size_t block_lane =
          bound.empty()
              ? lane
              : static_cast<std::size_t>(std::find(bound.begin(), bound.end(), lane) - bound.begin());
      const BlockTasks& tasks = blocks_[of.block];
      if (block_lane + 1 >= tasks.first_on_lane.size()) continue;
      const std::span<const TaskInfo> infos = program_->blocks()[of.block].tasks();
      const std::uint32_t begin = tasks.first_on_lane[block_lane], end = tasks.first_on_lane[block_lane + 1];
      if (begin == end || skip(of.first + tasks.by_lane[end - 1])) continue;
      for (std::uint32_t i = begin; i < end; ++i) visit(of.first + tasks.by_lane[i], infos[tasks.by_lane[i]]);
    }
  }
  // The task before it on the same lane; kNoTask for the first one.
  [[nodiscard]] std::size_t previous_on_lane(RankClassId c, std::size_t flat) const {
    const ClassTasks& tasks = classes_[c.index()];
    const InstanceTasks& of = instance_of(tasks, flat);
    const std::uint32_t in_block = blocks_[of.block].previous[flat - of.first];
    return in_block != kNone ? of.first + in_block
                             : tasks.last_before[of.instance * tasks.lane_count + lane(c, flat)];
  }
  // The collective that a task takes part in; invalid for other tasks.
  [[nodiscard]] CollectiveId collective_of(RankClassId c, std::size_t flat) const;

  // Calls visit(FlatSource) for every incoming edge, in the order of the block. The order on the lane is not
  // an edge.
  template <class Visit>
  void for_each_source(RankClassId c, std::size_t flat, const Costs& costs, Visit&& visit) const {
    const ClassTasks& tasks = classes_[c.index()];
    const InstanceTasks& of = instance_of(tasks, flat);
    const BlockId block_id{std::size_t{of.block}};
    const Block& block = program_->block(block_id);
    const std::size_t task = flat - of.first;
    const std::uint32_t ports_from = 2 * block.task_count();
    for (std::uint32_t e = block.first_edge()[task]; e < block.first_edge()[task + 1]; ++e) {
      FlatSource source;
      source.info = block.edge_infos()[e];
      source.delay_us = costs.delay_us(block_id)[e];
      const std::uint32_t code = block.sources()[e];
      // Codes below ports_from are tasks of this block (2 t: start, 2 t + 1: end). The others are in-ports.
      if (code < ports_from) {
        source.task = of.first + code / 2;
        source.from_end = (code % 2) == 1;
      } else {
        const SlotValue& slot = slot_value(c, tasks, of, code - ports_from);
        source.task = slot.task;
        source.from_end = slot.from_end;
        source.delay_us += slot.delay_us;
      }
      visit(source);
    }
  }

 private:
  // A mark for every 32 tasks limits the search for the instance of a task.
  static constexpr std::size_t kTasksPerMark = 32;
  static constexpr std::uint32_t kNone = 0xffffffff;
  // Data of a block, shared by all of its instances.
  struct BlockTasks {
    std::vector<std::uint32_t> by_lane;  // tasks sorted by lane
    // [lane of the block] index into by_lane; one more entry at the end.
    std::vector<std::uint32_t> first_on_lane;
    std::vector<std::uint32_t> previous;  // [task] the task before it on its lane; kNone for the first
  };
  // One block instance.
  struct InstanceTasks {
    std::uint32_t instance, block;
    std::size_t first;        // flat number of its first task
    std::size_t slots;        // index into slot_values: the values of the slots before the instance
    std::size_t collectives;  // index into collective_ids
  };
  // The task that last wrote a slot, with the delay along the way.
  struct SlotValue {
    std::size_t task = kNoTask;
    bool from_end = true;
    double delay_us = 0;
  };
  // Data of one rank class.
  struct ClassTasks {
    std::size_t task_count = 0;
    std::vector<InstanceTasks> instances;
    std::vector<std::uint32_t> marks;  // [flat number / kTasksPerMark] the instance that contains the task
    std::vector<SlotValue> slot_values;
    std::size_t lane_count = 0;
    std::vector<std::size_t> last_before;  // [instance * lane_count + lane] the last task before the instance
    std::vector<CollectiveId> collective_ids;
  };

  // The instance of a task: from the mark a short linear search.
  [[nodiscard]] static const InstanceTasks& instance_of(const ClassTasks& tasks, std::size_t flat) {
    std::size_t i = tasks.marks[flat / kTasksPerMark];
    while (i + 1 < tasks.instances.size() && tasks.instances[i + 1].first <= flat) ++i;
    return tasks.instances[i];
  }
  // The value that an in-port of an instance reads.
  [[nodiscard]] const SlotValue& slot_value(RankClassId c, const ClassTasks& tasks, const InstanceTasks& of,
                                            std::uint32_t in_port) const {
    return tasks.slot_values[of.slots + program_->rank_class(c).instances[of.instance].in_slots[in_port]];
  }
  // The index of a task among the collective tasks of its block. Binary search.
  [[nodiscard]] static std::size_t collective_position(const Block& block, TaskId task) {
    const auto all = block.collective_tasks();
    return static_cast<std::size_t>(std::lower_bound(all.begin(), all.end(), task) - all.begin());
  }
  // Numbers the tasks of a class and follows its slots through all instances.
  void write_out(RankClassId c);
  // Adds the tasks that represent bodies to the other lanes that the bodies use.
  void visit_bodies_on_their_lanes(const Block& block, BlockTasks& tasks) const;

  const Program* program_;
  const BodyProfiles* bodies_;
  std::vector<BlockTasks> blocks_;
  std::vector<ClassTasks> classes_;
};

}  // namespace stepcast
