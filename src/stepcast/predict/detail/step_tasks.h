// Tasks of a described step, made from the placed items of its work lists. step_program writes them into
// blocks.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "stepcast/base/result.h"
#include "stepcast/predict/priced_step.h"
#include "stepcast/predict/step_prices.h"
#include "stepcast/program/program.h"

namespace stepcast::detail {

// Lanes of every rank class, in this order. The last two exist only in V-shaped schedules.
enum LaneIndex : std::uint16_t {
  kCompute,
  kBeside,  // transfers that overlap one operation: tensor, context and expert parallelism
  kRest,    // transfers that overlap the remainder of a list: experts
  kData,    // weights and gradients
  kSendForward,
  kReceiveForward,
  kSendBackward,
  kReceiveBackward,
  kHost,
  kReceiveForwardBack,  // V-shaped schedules: for the second chunk, with the neighbours in the opposite direction
  kReceiveBackwardBack,
  kLaneCount
};
// The lanes of LaneIndex, with the last two only if `v_shaped`.
[[nodiscard]] std::vector<Lane> step_lanes(bool v_shaped);

// A task with its duration in microseconds, ready to be added to blocks.
struct ReadyTask {
  TaskInfo info;
  double us = 0;
};

// A work list as tasks in order. Items on `WorkLane::beside` overlap the next item that computes.
struct ReadyList {
  struct Item {
    ReadyTask task;
    WorkLane lane = WorkLane::computation;
    bool computes = false;
    bool joins = false;  // the computation waits for all open transfers of WorkLane::rest first
  };
  std::vector<Item> items;
  std::optional<ReadyTask> launches;  // host task that launches the kernels of the list while it runs
};

// The tasks of a layer, the embedding or the head: its work lists, and the transfers of its weights and
// gradients.
struct ReadyUnit {
  ReadyList forward, backward, held_back;
  std::vector<ReadyTask> gather, reduce;
};

// Makes tasks for one Program. Names, works and groups are interned in `program`, so blocks share them.
class StepTasks {
 public:
  StepTasks(Program& program, const PricedStep& step, StepPricer& prices)
      : program_(program), step_(step), prices_(prices) {}

  // Errors: those of lay_out().
  Result<ReadyUnit> unit(const LayerWork& work, const DataTransfers& transfers);
  Result<ReadyList> update(const PricedStep::Update& update);
  std::vector<ReadyTask> bulk(const BulkTransfers& transfers, std::string_view name);
  ReadyTask bulk(const BulkTransfer& transfer, TaskKind kind, std::string_view name);
  // A task without work or duration. It ends when its incoming edges are satisfied.
  ReadyTask wait(std::string_view name);
  // Host work between two steps, with the duration of the schedule.
  ReadyTask between_steps();

 private:
  // `of_pass`: the list belongs to a forward or backward pass, so the host launches it, and its times include
  // the factor for the slowest GPU of the job.
  Result<ReadyList> list(const WorkList& work, bool of_pass);
  ReadyTask task(TaskKind kind, KernelClass kernel_class, std::string_view name, const TaskWork& work,
                 double times, double us);
  [[nodiscard]] TaskWork work_of_transfer(const Transfer& transfer);

  Program& program_;
  const PricedStep& step_;
  StepPricer& prices_;
  std::vector<PlacedItem> placed_;  // of the current list; kept to reuse its memory
};

// Writes tasks into one block, after adding the lanes of LaneIndex to it.
class BlockWriter {
 public:
  BlockWriter(BlockBuilder& block, bool v_shaped);

  // Tasks added from now on belong to this part of the block (TaskInfo::part).
  void begin_part(NameId part) { block_.begin_part(part); }

  TaskId add(LaneIndex lane, const ReadyTask& task, std::span<const Moment> after = {});
  TaskId add(LaneIndex lane, const ReadyTask& task, Moment after) { return add(lane, task, {&after, 1}); }
  // Adds tasks one after the other. The first one waits for `after`, if given. Returns the last one, or
  // nothing if `tasks` is empty.
  std::optional<TaskId> add(LaneIndex lane, std::span<const ReadyTask> tasks, std::optional<Moment> after);
  // Adds a whole list. It begins when its lanes are free and all moments of `after` have passed. The returned
  // task ends when everything in the list has ended.
  TaskId add(const ReadyList& list, std::span<const Moment> after, const ReadyTask& begin,
             const ReadyTask& end);

 private:
  BlockBuilder& block_;
  std::vector<LaneId> lanes_;
  std::vector<Moment> waits_;    // for the next task on the compute lane
  std::vector<TaskId> besides_;  // transfers that overlap the next task that computes
  std::vector<TaskId> rest_;     // open transfers that overlap the remainder of the list
};

}  // namespace stepcast::detail
