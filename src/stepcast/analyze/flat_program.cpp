#include "stepcast/analyze/flat_program.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace stepcast {
namespace {

// How many there will be on every lane of the class.
std::vector<std::size_t> tasks_of_lanes(const Program& program, const RankClass& rank_class) {
  std::vector<std::size_t> sizes(rank_class.lanes.size(), 0);
  std::map<BlockId, std::vector<std::size_t>> of_block;  // many instances share one
  for (const BlockInstance& instance : rank_class.instances) {
    std::vector<std::size_t>& on_lane = of_block[instance.block];
    const Block& block = program.block(instance.block);
    if (on_lane.empty()) {
      on_lane.resize(block.lanes().size(), 0);
      for (const std::uint16_t lane : block.lane_codes()) ++on_lane[lane];
    }
    for (std::size_t lane = 0; lane < on_lane.size(); ++lane) {
      sizes[instance.lanes.empty() ? lane : instance.lanes[lane]] += on_lane[lane];
    }
  }
  return sizes;
}

}  // namespace

FlatProgram::FlatProgram(const Program& program)
    : program_(&program), classes_(program.rank_classes().size()) {
  for (std::size_t c = 0; c < classes_.size(); ++c) write_out(RankClassId{c});
  for (std::size_t i = 0; i < program.collectives().size(); ++i) {
    for (const CollectiveMember& member : program.collectives()[i].members) {
      members_.push_back({member, CollectiveId{i}});
    }
  }
  std::sort(members_.begin(), members_.end(),
            [](const MemberKey& a, const MemberKey& b) { return a.member < b.member; });
}

void FlatProgram::write_out(RankClassId c) {
  const RankClass& rank_class = program_->rank_class(c);
  ClassTasks& tasks = classes_[c.index()];
  const std::vector<std::size_t> lane_sizes = tasks_of_lanes(*program_, rank_class);
  tasks.lane_tasks.resize(rank_class.lanes.size());
  for (std::size_t lane = 0; lane < lane_sizes.size(); ++lane) {
    tasks.lane_tasks[lane].reserve(lane_sizes[lane]);
  }
  tasks.previous.reserve(std::accumulate(lane_sizes.begin(), lane_sizes.end(), std::size_t{0}));
  std::vector<SlotValue> slots(rank_class.slot_count), written;
  for (std::size_t i = 0; i < rank_class.instances.size(); ++i) {
    const BlockInstance& instance = rank_class.instances[i];
    const Block& block = program_->block(instance.block);
    const std::uint32_t ports_from = 2 * block.task_count();
    const InstanceTasks of{static_cast<std::uint32_t>(i), tasks.task_count, tasks.slot_values.size()};
    tasks.instances.push_back(of);
    tasks.slot_values.insert(tasks.slot_values.end(), slots.begin(), slots.end());
    for (std::size_t t = 0; t < block.task_count(); ++t) {
      const std::uint16_t block_lane = block.lane_codes()[t];
      const std::uint16_t lane = instance.lanes.empty() ? block_lane : instance.lanes[block_lane];
      std::vector<std::size_t>& on_lane = tasks.lane_tasks[lane];
      tasks.previous.push_back(on_lane.empty() ? kNoTask : on_lane.back());
      on_lane.push_back(of.first + t);
    }
    tasks.task_count += block.task_count();
    while (tasks.marks.size() * kTasksPerMark < tasks.task_count) {
      tasks.marks.push_back(static_cast<std::uint32_t>(i));
    }
    // Every out-port is read from the state at the beginning before any slot is written.
    written.clear();
    for (const OutPort& port : block.out_ports()) {
      SlotValue value;
      const std::uint32_t code = port.source.code();
      if (code < ports_from) {
        value = {of.first + code / 2, (code % 2) == 1, 0.0};
      } else {
        value = slots[instance.in_slots[code - ports_from]];
      }
      value.delay_us += port.delay.value();
      written.push_back(value);
    }
    for (std::size_t p = 0; p < written.size(); ++p) slots[instance.out_slots[p]] = written[p];
  }
}

unsigned FlatProgram::threads() const {
  constexpr std::size_t kFewTasks = 50'000;  // a thread costs as much as some ten thousand
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
  return program_->block_of(c, InstanceId{std::size_t{of.instance}}).tasks()[flat - of.first];
}

std::uint16_t FlatProgram::lane(RankClassId c, std::size_t flat) const {
  const InstanceTasks& of = instance_of(classes_[c.index()], flat);
  const BlockInstance& instance = program_->rank_class(c).instances[of.instance];
  const std::uint16_t block_lane = program_->block(instance.block).lane_codes()[flat - of.first];
  return instance.lanes.empty() ? block_lane : instance.lanes[block_lane];
}

double FlatProgram::duration_us(RankClassId c, std::size_t flat, const Costs& costs) const {
  const InstanceTasks& of = instance_of(classes_[c.index()], flat);
  return costs.duration_us(program_->rank_class(c).instances[of.instance].block)[flat - of.first];
}

CollectiveId FlatProgram::collective_of(RankClassId c, std::size_t flat) const {
  const InstanceTasks& of = instance_of(classes_[c.index()], flat);
  const CollectiveMember member{c, InstanceId{std::size_t{of.instance}}, TaskId{flat - of.first}};
  if (program_->block_of(c, member.instance).task(member.task).kind != TaskKind::collective) return {};
  const auto found =
      std::lower_bound(members_.begin(), members_.end(), member,
                       [](const MemberKey& key, const CollectiveMember& m) { return key.member < m; });
  return found != members_.end() && found->member == member ? found->collective : CollectiveId{};
}

}  // namespace stepcast
