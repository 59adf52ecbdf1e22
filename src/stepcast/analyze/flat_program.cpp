// The constructor does all the work once, in O(tasks of blocks + instances * lanes): it sorts the tasks of
// each block by lane, follows the slots of each class through its instances (write_out()), and enters the
// collectives. Queries then need a short search for the instance at most.
#include "stepcast/analyze/flat_program.h"

#include <cstddef>
#include <numeric>

#include "stepcast/analyze/body_profiles.h"

namespace stepcast {

FlatProgram::FlatProgram(const Program& program, const BodyProfiles* bodies)
    : program_(&program),
      bodies_(bodies),
      blocks_(program.blocks().size()),
      classes_(program.rank_classes().size()) {
  // A counting sort of the block's tasks by lane.
  for (std::size_t b = 0; b < blocks_.size(); ++b) {
    const Block& block = program.blocks()[b];
    const std::span<const std::uint16_t> lanes = block.lane_codes();
    BlockTasks& tasks = blocks_[b];
    tasks.first_on_lane.assign(block.lanes().size() + 1, 0);
    for (const std::uint16_t lane : lanes) ++tasks.first_on_lane[lane + 1U];
    std::partial_sum(tasks.first_on_lane.begin(), tasks.first_on_lane.end(), tasks.first_on_lane.begin());
    // `next`: where the next task of each lane is entered.
    std::vector<std::uint32_t> next = tasks.first_on_lane;
    tasks.by_lane.resize(lanes.size());
    tasks.previous.resize(lanes.size());
    for (std::uint32_t t = 0; t < lanes.size(); ++t) {
      std::uint32_t& at = next[lanes[t]];
      tasks.previous[t] = at == tasks.first_on_lane[lanes[t]] ? kNone : tasks.by_lane[at - 1];
      tasks.by_lane[at++] = t;
    }
    if (bodies_ != nullptr) visit_bodies_on_their_lanes(block, tasks);
  }
  for (std::size_t c = 0; c < classes_.size(); ++c) write_out(RankClassId{c});
  // collective_ids was sized by write_out(): one entry per collective task of each instance.
  for (std::size_t i = 0; i < program.collectives().size(); ++i) {
    for (const CollectiveMember& m : program.collectives()[i].members) {
      ClassTasks& tasks = classes_[m.rank_class.index()];
      const InstanceTasks& of = tasks.instances[m.instance.index()];
      tasks.collective_ids[of.collectives + collective_position(program.blocks()[of.block], m.task)] =
          CollectiveId{i};
    }
  }
}

// A body is entered in front of the tasks of the other lanes it uses, and the ranges of later lanes move by
// one.
void FlatProgram::visit_bodies_on_their_lanes(const Block& block, BlockTasks& tasks) const {
  for (std::uint32_t t = 0; t < block.task_count(); ++t) {
    const BodyProfile* body = bodies_->of(block.tasks()[t]);
    if (body == nullptr) continue;
    for (std::size_t lane = 0; lane < body->lanes.size(); ++lane) {
      if (lane == block.lane_codes()[t] || body->lanes[lane].tasks == 0) continue;
      const auto at = tasks.by_lane.begin() + static_cast<std::ptrdiff_t>(tasks.first_on_lane[lane]);
      tasks.by_lane.insert(at, t);
      for (std::size_t next = lane + 1; next < tasks.first_on_lane.size(); ++next)
        ++tasks.first_on_lane[next];
    }
  }
}

void FlatProgram::write_out(RankClassId c) {
  const RankClass& rank_class = program_->rank_class(c);
  ClassTasks& tasks = classes_[c.index()];
  tasks.lane_count = rank_class.lanes.size();
  tasks.instances.reserve(rank_class.instances.size());
  tasks.slot_values.reserve(rank_class.instances.size() * rank_class.slot_count);
  tasks.last_before.reserve(rank_class.instances.size() * tasks.lane_count);
  std::vector<std::size_t> last(tasks.lane_count, kNoTask);
  std::size_t collective_count = 0;
  // `slots` is the state while the instances are passed in order. Each instance keeps a copy of the state
  // before it.
  std::vector<SlotValue> slots(rank_class.slot_count), written;
  for (std::size_t i = 0; i < rank_class.instances.size(); ++i) {
    const BlockInstance& instance = rank_class.instances[i];
    const Block& block = program_->block(instance.block);
    const std::uint32_t ports_from = 2 * block.task_count();
    const InstanceTasks of{.instance = static_cast<std::uint32_t>(i),
                           .block = static_cast<std::uint32_t>(instance.block.index()),
                           .first = tasks.task_count,
                           .slots = tasks.slot_values.size(),
                           .collectives = collective_count};
    tasks.instances.push_back(of);
    tasks.slot_values.insert(tasks.slot_values.end(), slots.begin(), slots.end());
    tasks.last_before.insert(tasks.last_before.end(), last.begin(), last.end());
    collective_count += block.collective_tasks().size();
    const BlockTasks& in_block = blocks_[of.block];
    // The last task on each lane after this instance. A body visited on another lane is not the last task
    // there.
    for (std::size_t lane = 0; lane + 1 < in_block.first_on_lane.size(); ++lane) {
      const std::uint32_t end = in_block.first_on_lane[lane + 1];
      if (end == in_block.first_on_lane[lane] || block.lane_codes()[in_block.by_lane[end - 1]] != lane)
        continue;
      last[instance.lanes.empty() ? lane : instance.lanes[lane]] = of.first + in_block.by_lane[end - 1];
    }
    tasks.task_count += block.task_count();
    // The mark of a group of tasks is the instance that contains the first of them.
    while (tasks.marks.size() * kTasksPerMark < tasks.task_count)
      tasks.marks.push_back(static_cast<std::uint32_t>(i));
    // All out-ports read the state from before the instance, so all values are computed before any slot is
    // written.
    written.clear();
    for (const OutPort& port : block.out_ports()) {
      SlotValue value;
      const std::uint32_t code = port.source.code();
      if (code < ports_from)
        value = {of.first + code / 2, (code % 2) == 1, 0.0};
      else
        value = slots[instance.in_slots[code - ports_from]];
      value.delay_us += port.delay.value();
      written.push_back(value);
    }
    for (std::size_t p = 0; p < written.size(); ++p) slots[instance.out_slots[p]] = written[p];
  }
  tasks.collective_ids.resize(collective_count);
}

std::vector<std::size_t> FlatProgram::lane_tasks(RankClassId c, std::uint16_t lane) const {
  std::vector<std::size_t> tasks;
  for_each_on_lane(c, lane, [&](std::size_t task, const TaskInfo& /*info*/) { tasks.push_back(task); });
  return tasks;
}

unsigned FlatProgram::threads() const {
  constexpr std::size_t kFewTasks = 50'000;  // starting a thread costs as much as some ten thousand tasks
  std::size_t tasks = 0;
  for (const ClassTasks& of_class : classes_) tasks += of_class.task_count;
  return tasks < kFewTasks ? 1 : 0;
}

TaskRef FlatProgram::ref(RankClassId c, std::size_t flat) const {
  const InstanceTasks& of = instance_of(classes_[c.index()], flat);
  return {.rank_class = c,
          .rank = 0,
          .instance = InstanceId{std::size_t{of.instance}},
          .task = TaskId{flat - of.first}};
}

std::size_t FlatProgram::flat(const TaskRef& t) const {
  const ClassTasks& tasks = classes_[t.rank_class.index()];
  return tasks.instances[t.instance.index()].first + t.task.index();
}

const TaskInfo& FlatProgram::info(RankClassId c, std::size_t flat) const {
  const InstanceTasks& of = instance_of(classes_[c.index()], flat);
  return program_->blocks()[of.block].tasks()[flat - of.first];
}

std::uint16_t FlatProgram::lane(RankClassId c, std::size_t flat) const {
  const InstanceTasks& of = instance_of(classes_[c.index()], flat);
  const BlockInstance& instance = program_->rank_class(c).instances[of.instance];
  const std::uint16_t block_lane = program_->blocks()[of.block].lane_codes()[flat - of.first];
  return instance.lanes.empty() ? block_lane : instance.lanes[block_lane];
}

double FlatProgram::duration_us(RankClassId c, std::size_t flat, const Costs& costs) const {
  const InstanceTasks& of = instance_of(classes_[c.index()], flat);
  return costs.duration_us(BlockId{std::size_t{of.block}})[flat - of.first];
}

CollectiveId FlatProgram::collective_of(RankClassId c, std::size_t flat) const {
  const ClassTasks& tasks = classes_[c.index()];
  const InstanceTasks& of = instance_of(tasks, flat);
  const Block& block = program_->blocks()[of.block];
  const TaskId task{flat - of.first};
  if (block.task(task).kind != TaskKind::collective) return {};
  return tasks.collective_ids[of.collectives + collective_position(block, task)];
}

}  // namespace stepcast
