// The tasks of every rank class of a Program written out one after the other: the tasks of its
// instances.
//
// Every analysis asks the same questions of a task: which lane is it on, what comes before it there, what
// else did it wait for. A FlatProgram answers them across instances: an in-port leads to the task of the
// earlier instance that wrote its slot.
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

inline constexpr std::size_t kNoTask = std::numeric_limits<std::size_t>::max();

// Something that had to happen before a task could start. `task` is a flat number; kNoTask stands for the
// rank's start.
struct FlatSource {
  EdgeInfo info;
  std::size_t task = kNoTask;
  bool from_end = true;  // the end of `task`, or its start
  double delay_us = 0;
};

class BodyProfiles;

class FlatProgram {
 public:
  // `program` must outlive this object and have passed Program::check. `bodies`, which must outlive it too, says what tasks
  // of it stand for. Such a task is visited on every lane that its body uses, and is otherwise one of its own lane alone.
  explicit FlatProgram(const Program& program, const BodyProfiles* bodies = nullptr);

  [[nodiscard]] const Program& program() const { return *program_; }
  [[nodiscard]] const BodyProfiles* bodies() const { return bodies_; }
  [[nodiscard]] std::size_t class_count() const { return classes_.size(); }
  [[nodiscard]] std::size_t task_count(RankClassId c) const { return classes_[c.index()].task_count; }

  // For parallel_for: 1 where tasks are so few that threads would cost more than they save, else 0.
  [[nodiscard]] unsigned threads() const;

  [[nodiscard]] TaskRef ref(RankClassId c, std::size_t flat) const;
  [[nodiscard]] std::size_t flat(const TaskRef& t) const;
  [[nodiscard]] const TaskInfo& info(RankClassId c, std::size_t flat) const;
  // Lane of the class, not of the block.
  [[nodiscard]] std::uint16_t lane(RankClassId c, std::size_t flat) const;
  [[nodiscard]] const Lane& lane_of(RankClassId c, std::size_t flat) const {
    return program_->rank_class(c).lanes[lane(c, flat)];
  }
  [[nodiscard]] double duration_us(RankClassId c, std::size_t flat, const Costs& costs) const;
  // Tasks of one lane in the order in which they run.
  [[nodiscard]] std::vector<std::size_t> lane_tasks(RankClassId c, std::uint16_t lane) const;
  // Calls visit(flat number, TaskInfo) for them; faster than asking for the info of each.
  template <class Visit>
  void for_each_on_lane(RankClassId c, std::uint16_t lane, Visit&& visit) const {
    for_each_on_lane(
        c, lane, [](std::size_t /*last*/) { return false; }, visit);
  }
  // Without those of instances for which skip(the last of them there) holds.
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
  // The task before it on its lane; kNoTask for the first.
  [[nodiscard]] std::size_t previous_on_lane(RankClassId c, std::size_t flat) const {
    const ClassTasks& tasks = classes_[c.index()];
    const InstanceTasks& of = instance_of(tasks, flat);
    const std::uint32_t in_block = blocks_[of.block].previous[flat - of.first];
    return in_block != kNone ? of.first + in_block
                             : tasks.last_before[of.instance * tasks.lane_count + lane(c, flat)];
  }
  // The collective that a task takes part in; invalid for all others.
  [[nodiscard]] CollectiveId collective_of(RankClassId c, std::size_t flat) const;

  // Calls visit(FlatSource) for every incoming edge, in the order of the block. The lane itself is not among
  // them.
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
  static constexpr std::size_t kTasksPerMark = 32;
  static constexpr std::uint32_t kNone = 0xffffffff;
  // Of a block: the same in all of its instances.
  struct BlockTasks {
    std::vector<std::uint32_t> by_lane;        // tasks of its lanes, one lane behind the other
    std::vector<std::uint32_t> first_on_lane;  // [lane of the block] into by_lane, one more at the end
    std::vector<std::uint32_t> previous;       // [task] the one before it on its lane; kNone for the first
  };
  struct InstanceTasks {
    std::uint32_t instance, block;
    std::size_t first;        // flat number of its first task
    std::size_t slots;        // its slots' values in slot_values
    std::size_t collectives;  // those of its collective tasks in collective_ids
  };
  struct SlotValue {  // who wrote a slot last
    std::size_t task = kNoTask;
    bool from_end = true;
    double delay_us = 0;
  };
  struct ClassTasks {
    std::size_t task_count = 0;
    std::vector<InstanceTasks> instances;
    std::vector<std::uint32_t> marks;  // [flat number / kTasksPerMark] -> the instance that holds that task
    std::vector<SlotValue> slot_values;
    std::size_t lane_count = 0;
    std::vector<std::size_t> last_before;  // [instance * lane_count + lane] the last task before the instance
    std::vector<CollectiveId> collective_ids;
  };

  [[nodiscard]] static const InstanceTasks& instance_of(const ClassTasks& tasks, std::size_t flat) {
    std::size_t i = tasks.marks[flat / kTasksPerMark];
    while (i + 1 < tasks.instances.size() && tasks.instances[i + 1].first <= flat) ++i;
    return tasks.instances[i];
  }
  [[nodiscard]] const SlotValue& slot_value(RankClassId c, const ClassTasks& tasks, const InstanceTasks& of,
                                            std::uint32_t in_port) const {
    return tasks.slot_values[of.slots + program_->rank_class(c).instances[of.instance].in_slots[in_port]];
  }
  // Which of the collective tasks of its block a task is.
  [[nodiscard]] static std::size_t collective_position(const Block& block, TaskId task) {
    const auto all = block.collective_tasks();
    return static_cast<std::size_t>(std::lower_bound(all.begin(), all.end(), task) - all.begin());
  }
  void write_out(RankClassId c);
  void visit_bodies_on_their_lanes(const Block& block, BlockTasks& tasks) const;

  const Program* program_;
  const BodyProfiles* bodies_;
  std::vector<BlockTasks> blocks_;
  std::vector<ClassTasks> classes_;
};

}  // namespace stepcast
