#include "stepcast/retrace/overlap_change.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "stepcast/predict/replay.h"
#include "stepcast/retrace/detail/block_edit.h"
#include "stepcast/retrace/detail/recorded_tasks.h"

namespace stepcast {
namespace {

// GPU work of one rank by its recorded begin.
struct GpuTask {
  double begin_us = 0;  // recorded; for a transfer without the wait for other ranks
  TaskId task;
  bool transfer = false;
};

// Transfers and computation of the step by recorded begin.
std::vector<GpuTask> in_recorded_order(const Block& block, const std::vector<Interval>& measured) {
  const std::vector<bool> left_over = left_over_tasks(block);
  std::vector<GpuTask> tasks;
  for (std::uint32_t t = 0; t < block.task_count(); ++t) {
    const TaskInfo& task = block.tasks()[t];
    if (left_over[t] || !(detail::is_transfer(task) || detail::is_computation(task))) continue;
    const double begin_us = detail::is_transfer(task)
                                ? std::max(measured[t].start_us, measured[t].end_us - block.duration_us()[t])
                                : measured[t].start_us;
    tasks.push_back({begin_us, TaskId{t}, detail::is_transfer(task)});
  }
  std::stable_sort(tasks.begin(), tasks.end(),
                   [](const GpuTask& a, const GpuTask& b) { return a.begin_us < b.begin_us; });
  return tasks;
}

// Orders every transfer after the last earlier computation of each stream, and the next computation of each stream after it.
void serialize(const Block& block, const std::vector<GpuTask>& tasks, BlockBuilder& builder) {
  const auto follow = [&](TaskId before, TaskId after) {
    builder.add_edge(BlockBuilder::end_of(before), after, Microseconds{},
                     {.origin = EdgeOrigin::dependency, .inferred = true});
  };
  TaskId transfer;
  std::map<LaneId, TaskId> last;  // computation since the last transfer, by stream
  for (const GpuTask& task : tasks) {
    if (task.transfer) {
      if (transfer.valid()) follow(transfer, task.task);
      for (const auto& [lane, computation] : last) follow(computation, task.task);
      last.clear();
      transfer = task.task;
      continue;
    }
    const auto [of_lane, first] = last.insert_or_assign(block.lane_of(task.task), task.task);
    if (first && transfer.valid()) follow(transfer, of_lane->second);
  }
}

// A block with the changed overlap, and the new numbers of its tasks.
struct Rewritten {
  BlockBuilder::Finished finished;
  std::vector<TaskId> of_task;  // [old task]
  TaskId step_end;              // invalid: unchanged
};

// True for edges to host calls that return when GPU work has ended.
bool is_synchronization(const EdgeInfo& edge) { return edge.origin == EdgeOrigin::synchronization; }

// Copies `block` without the edges that the change removes and adds new ones. With perfect overlap a new task of zero length
// ends the step after the last transfer of every stream. If the host does not wait, it follows the last work of every stream.
class Rewriting {
 public:
  Rewriting(const Block& block, const std::vector<Interval>& measured, const RecordedStepFacts& facts,
            OverlapChange change)
      : block_(block),
        measured_(measured),
        facts_(facts),
        change_(change),
        builder_(block.name(), block.role()) {}

  // `waiting`: the work of the new end task.
  Result<Rewritten> run(WorkId waiting) {
    for (const Lane& lane : block_.lanes()) builder_.add_lane(lane);
    for (const std::string& port : block_.in_ports()) builder_.add_in_port(port);
    TaskId end;
    for (std::uint32_t t = 0; t < block_.task_count(); ++t) {
      const bool ends = change_ != OverlapChange::none && facts_.step_end_task == TaskId{t};
      const auto add_end = [&] {
        end = builder_.add_task(block_.lane_of(TaskId{t}), {.kind = TaskKind::wait, .work = waiting},
                                Microseconds{});
      };
      if (ends && facts_.step_ends_at_start) add_end();
      id_.push_back(builder_.add_task(block_.lane_of(TaskId{t}), block_.tasks()[t],
                                      Microseconds{block_.duration_us()[t]}));
      if (ends && !facts_.step_ends_at_start) add_end();
    }
    copy_edges();
    const std::vector<GpuTask> tasks = in_recorded_order(block_, measured_);
    if (change_ == OverlapChange::none) serialize(block_, tasks, builder_);
    std::map<LaneId, TaskId> last;
    for (const GpuTask& task : tasks) {
      if (task.transfer || change_ == OverlapChange::host)
        last.insert_or_assign(block_.lane_of(task.task), task.task);
    }
    for (const auto& [lane, work] : last) {
      if (end.valid())
        builder_.add_edge(BlockBuilder::end_of(id_[work.index()]), end, Microseconds{},
                          {.origin = EdgeOrigin::dependency, .inferred = true});
    }
    STEPCAST_ASSIGN(BlockBuilder::Finished finished, std::move(builder_).finish_with_map());
    for (TaskId& id : id_) id = finished.new_id[id.index()];
    if (end.valid()) end = finished.new_id[end.index()];
    return Rewritten{std::move(finished), std::move(id_), end};
  }

 private:
  // Copies all edges except those that the change removes.
  void copy_edges() {
    const std::uint32_t n = block_.task_count();
    for (std::uint32_t t = 0; t < n; ++t) {
      for (std::uint32_t e = block_.first_edge()[t]; e < block_.first_edge()[t + 1]; ++e) {
        const std::uint32_t code = block_.sources()[e];
        const Microseconds delay{block_.delay_us()[e]};
        if (code >= 2 * n) {
          builder_.add_edge(BlockBuilder::arrival_at(InPortId{code - 2 * n}), id_[t], delay,
                            block_.edge_infos()[e]);
          continue;
        }
        if (change_ == OverlapChange::perfect && detail::is_transfer(block_.tasks()[code / 2]) &&
            !detail::is_transfer(block_.tasks()[t]))
          continue;
        if (change_ == OverlapChange::host && is_synchronization(block_.edge_infos()[e])) continue;
        const TaskId from = id_[code / 2];
        builder_.add_edge(code % 2 == 0 ? BlockBuilder::start_of(from) : BlockBuilder::end_of(from), id_[t],
                          delay, block_.edge_infos()[e]);
      }
    }
  }

  const Block& block_;
  const std::vector<Interval>& measured_;
  const RecordedStepFacts& facts_;
  OverlapChange change_;
  BlockBuilder builder_;
  std::vector<TaskId> id_;  // [task of the block] -> of the builder
};

}  // namespace

std::string_view to_string(OverlapChange change) {
  switch (change) {
    case OverlapChange::as_recorded: return "as recorded";
    case OverlapChange::none: return "none";
    case OverlapChange::perfect: return "perfect";
    case OverlapChange::host: return "host";
  }
  return "as recorded";
}

Result<RecordedProgram> with_overlap(RecordedProgram recorded, OverlapChange change) {
  if (change == OverlapChange::as_recorded) return recorded;
  const WorkId waiting = recorded.program.works.intern(Waiting{});
  std::vector<detail::EditedBlock> blocks;
  std::vector<TaskId> ends;  // [rank class]; invalid: as before
  bool any = false;
  for (std::size_t c = 0; c < recorded.program.rank_classes().size(); ++c) {
    const Block& block = recorded.program.block_of(RankClassId{c}, InstanceId{0});
    any = any || (change == OverlapChange::host ? std::ranges::any_of(block.edge_infos(), is_synchronization)
                                                : std::ranges::any_of(block.tasks(), detail::is_transfer));
    const RecordedStepFacts& facts = recorded.facts[c];
    STEPCAST_ASSIGN(Rewritten now, (Rewriting{block, recorded.measured[c], facts, change}.run(waiting)));
    std::vector<Interval> measured(now.finished.block.task_count(),
                                   {facts.step_us.end_us, facts.step_us.end_us});
    for (std::size_t t = 0; t < now.of_task.size(); ++t)
      measured[now.of_task[t].index()] = recorded.measured[c][t];
    ends.push_back(now.step_end);
    blocks.push_back({std::move(now.finished.block), std::move(now.of_task), std::move(measured)});
  }
  if (!any)
    return Error{change == OverlapChange::host
                     ? "no CPU call waits for the GPU in these traces"
                     : "the traces have no transfers with an overlap that could change"};
  STEPCAST_ASSIGN(RecordedProgram out, detail::with_blocks(std::move(recorded), std::move(blocks), {}));
  for (std::size_t c = 0; c < ends.size(); ++c) {
    if (!ends[c].valid()) continue;
    out.facts[c].step_end_task = ends[c];
    out.facts[c].step_ends_at_start = false;
  }
  return out;
}

}  // namespace stepcast
