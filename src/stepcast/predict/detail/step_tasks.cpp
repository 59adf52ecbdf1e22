// Converts placed items of work lists to tasks, and writes lists of tasks into blocks with the edges that
// WorkLane implies.
#include "stepcast/predict/detail/step_tasks.h"

#include <string>
#include <utility>

namespace stepcast::detail {

std::vector<Lane> step_lanes(bool v_shaped) {
  std::vector<Lane> lanes;
  const auto add = [&](const char* name, LaneKind kind = LaneKind::gpu_stream) {
    Lane& lane = lanes.emplace_back();
    lane.kind = kind;
    lane.name = name;
  };
  for (const char* name :
       {"computation", "transfers in layers", "exchange of experts", "weights and gradients",
        "send activations", "receive activations", "send gradients", "receive gradients"})
    add(name);
  add("launches", LaneKind::cpu_thread);
  lanes[kData].role = LaneRole::data_parallel;
  if (v_shaped) {
    add("receive activations on the way back");
    add("receive gradients on the way back");
  }
  return lanes;
}

// A task with its name and work interned in the Program.
ReadyTask StepTasks::task(TaskKind kind, KernelClass kernel_class, std::string_view name,
                          const TaskWork& work, double times, double us) {
  return {{.kind = kind,
           .kernel_class = kernel_class,
           .name = program_.names.intern(name),
           .work = program_.works.intern(work),
           .work_times = times},
          us};
}

TaskWork StepTasks::work_of_transfer(const Transfer& transfer) {
  return CollectiveWork{.op = transfer.op,
                        .message = transfer.message,
                        .group = program_.add_group({.label = std::string{to_string(transfer.group)}})};
}

Result<ReadyList> StepTasks::list(const WorkList& work, bool of_pass) {
  // Updates are not slowed down by this factor; neither are their launches modelled.
  const double factor = of_pass ? step_.slowest_gpu_factor : 1;
  STEPCAST_TRY(lay_out(work, prices_, step_.placement, placed_));
  ReadyList result;
  result.items.reserve(placed_.size());
  double kernels = 0;
  for (const PlacedItem& placed : placed_) {
    const WorkItem& item = *placed.item;
    const double times = static_cast<double>(item.count) * item.share;
    kernels += placed.kernels;
    const Transfer* transfer = item.transfer();
    const TaskWork task_work =
        transfer != nullptr ? work_of_transfer(*transfer) : TaskWork{*item.operation()};
    result.items.push_back({task(TaskKind::kernel, placed.kernel_class, item.name, task_work, factor * times,
                                 factor * placed.duration_us),
                            placed.lane, transfer == nullptr, placed.joins});
  }
  if (of_pass && kernels > 0) {
    const HostWork launches{.activity = step_.compiled ? HostWork::Activity::compiled_kernel_launches
                                                       : HostWork::Activity::kernel_launches};
    // Where the GPU waits for single launches, the launches last as long as the whole list.
    const PricedList sum = sum_of(placed_);
    const double us = time_with_launches(placed_, sum, step_.launch_us);
    if (us > sum.time_us && step_.launch_us > 0) kernels = us / step_.launch_us;
    result.launches = task(TaskKind::cpu_segment, KernelClass::none, "launches", launches,
                           factor * kernels * step_.operator_launches, factor * kernels * step_.launch_us);
  }
  return result;
}

Result<ReadyUnit> StepTasks::unit(const LayerWork& work, const DataTransfers& transfers) {
  ReadyUnit unit;
  STEPCAST_ASSIGN(unit.forward, list(work.forward, true));
  STEPCAST_ASSIGN(unit.backward, list(work.backward, true));
  STEPCAST_ASSIGN(unit.held_back, list(work.held_back, true));
  unit.gather = bulk(transfers.gather, "gather weights");
  unit.reduce = bulk(transfers.reduce, "reduce gradients");
  return unit;
}

Result<ReadyList> StepTasks::update(const PricedStep::Update& update) { return list(update.work, false); }

ReadyTask StepTasks::bulk(const BulkTransfer& transfer, TaskKind kind, std::string_view name) {
  return task(kind, KernelClass::communication, name, work_of_transfer(transfer.transfer), transfer.times,
              transfer.time_us);
}

std::vector<ReadyTask> StepTasks::bulk(const BulkTransfers& transfers, std::string_view name) {
  std::vector<ReadyTask> tasks;
  for (const BulkTransfer& part : transfers.parts()) tasks.push_back(bulk(part, TaskKind::kernel, name));
  return tasks;
}

ReadyTask StepTasks::wait(std::string_view name) {
  return task(TaskKind::wait, KernelClass::none, name, Waiting{}, 1, 0);
}

// `work_times` is relative to the assumed time between steps, so that pricing the work gives the duration of
// this schedule.
ReadyTask StepTasks::between_steps() {
  const double usual_us = prices_.assumptions().step_fixed_us;
  return task(TaskKind::cpu_segment, KernelClass::none, "between steps",
              HostWork{.activity = HostWork::Activity::between_steps},
              usual_us > 0 ? step_.schedule.fixed_us / usual_us : 1, step_.schedule.fixed_us);
}

BlockWriter::BlockWriter(BlockBuilder& block, bool v_shaped) : block_(block) {
  for (Lane& lane : step_lanes(v_shaped)) lanes_.push_back(block_.add_lane(std::move(lane)));
}

TaskId BlockWriter::add(LaneIndex lane, const ReadyTask& task, std::span<const Moment> after) {
  const TaskId id = block_.add_task(lanes_[lane], task.info, Microseconds{task.us});
  for (const Moment moment : after) block_.add_edge(moment, id, Microseconds{}, {});
  return id;
}

std::optional<TaskId> BlockWriter::add(LaneIndex lane, std::span<const ReadyTask> tasks,
                                       std::optional<Moment> after) {
  std::optional<TaskId> last;
  for (const ReadyTask& task : tasks) {
    last = after && !last ? add(lane, task, *after) : add(lane, task);
  }
  return last;
}

TaskId BlockWriter::add(const ReadyList& list, std::span<const Moment> after, const ReadyTask& begin,
                        const ReadyTask& end) {
  std::optional<TaskId> first, last;  // on the compute lane
  waits_.assign(after.begin(), after.end());
  besides_.clear();
  rest_.clear();
  // A task without work is needed as the start when the list has no computation at its front, or to wait for
  // several moments at once.
  if (list.items.empty() || list.items.front().lane != WorkLane::computation || after.size() > 1) {
    first = last = add(kCompute, begin, waits_);
    waits_.clear();
  }
  std::size_t pending = 0;  // first item that may have transfers not yet added
  const auto start_pending = [&](std::size_t until) {
    for (; pending < until; ++pending) {
      const ReadyList::Item& item = list.items[pending];
      if (item.lane == WorkLane::beside) besides_.push_back(add(kBeside, item.task, Moment::end_of(*last)));
    }
  };
  for (std::size_t i = 0; i < list.items.size(); ++i) {
    const ReadyList::Item& item = list.items[i];
    if (item.joins && !rest_.empty()) {
      for (const TaskId rest : rest_) waits_.push_back(Moment::end_of(rest));
      rest_.clear();
      last = add(kCompute, end, waits_);
      if (!first) first = last;
      waits_.clear();
    }
    // Added later by start_pending(), together with the next item that computes.
    if (item.lane == WorkLane::beside) continue;
    if (item.lane == WorkLane::rest) {
      rest_.push_back(add(kRest, item.task, Moment::end_of(*last)));
      continue;
    }
    // Transfers start together with the operation that they overlap, after everything before it.
    if (item.computes) start_pending(i);
    last = add(kCompute, item.task, waits_);
    if (!first) first = last;
    waits_.clear();
    if (!item.computes) continue;
    for (const TaskId beside : besides_) {
      block_.add_overlap(*last, beside);
      waits_.push_back(Moment::end_of(beside));
    }
    besides_.clear();
  }
  start_pending(list.items.size());
  for (const TaskId beside : besides_) waits_.push_back(Moment::end_of(beside));
  for (const TaskId rest : rest_) waits_.push_back(Moment::end_of(rest));
  // Without launches and open transfers, the last computation is the end of the list.
  if (!list.launches && waits_.empty()) return *last;
  std::optional<TaskId> host;
  if (list.launches) host = add(kHost, *list.launches, Moment::start_of(*first));
  const TaskId done = add(kCompute, end, waits_);
  if (host) block_.add_edge(Moment::end_of(*host), done, Microseconds{}, {.origin = EdgeOrigin::launch});
  return done;
}

}  // namespace stepcast::detail
