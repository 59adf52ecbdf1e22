// Tasks of a described step, made from the placed items of its lists: what step_program puts into blocks.
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

// Lanes of every rank class, in this order.
enum LaneIndex : std::uint16_t {
  kCompute,
  kBeside,  // beside an operation: tensor, context and expert parallelism
  kRest,    // beside the rest of a list: experts
  kData,    // weights and gradients
  kSendForward,
  kReceiveForward,
  kSendBackward,
  kReceiveBackward,
  kHost,
  kReceiveForwardBack,  // V-shaped schedules: of the chunk on the way back, whose neighbours are on the other side
  kReceiveBackwardBack,
  kLaneCount
};
[[nodiscard]] std::vector<Lane> step_lanes(bool v_shaped);

// A task that is ready to be put into blocks.
struct ReadyTask {
  TaskInfo info;
  double us = 0;
};

// A work list: tasks in order, those `beside` with the next one that computes.
struct ReadyList {
  struct Item {
    ReadyTask task;
    WorkLane lane = WorkLane::computation;
    bool computes = false;
    bool joins = false;  // the computation waits for the transfers beside the rest
  };
  std::vector<Item> items;
  std::optional<ReadyTask> launches;  // by the host, while the list runs
};

// A layer, the embedding or the head.
struct ReadyUnit {
  ReadyList forward, backward, held_back;
  std::vector<ReadyTask> gather, reduce;
};

// Names, works and groups go into `program` once, however many blocks use them.
class StepTasks {
 public:
  StepTasks(Program& program, const PricedStep& step, StepPricer& prices)
      : program_(program), step_(step), prices_(prices) {}

  Result<ReadyUnit> unit(const LayerWork& work, const DataTransfers& transfers);
  Result<ReadyList> update(const PricedStep::Update& update);
  std::vector<ReadyTask> bulk(const BulkTransfers& transfers, std::string_view name);
  ReadyTask bulk(const BulkTransfer& transfer, TaskKind kind, std::string_view name);
  ReadyTask wait(std::string_view name);
  ReadyTask between_steps();

 private:
  // `of_pass`: the host launches it, and all wait for the slowest GPU of the job.
  Result<ReadyList> list(const WorkList& work, bool of_pass);
  ReadyTask task(TaskKind kind, KernelClass kernel_class, std::string_view name, const TaskWork& work,
                 double times, double us);
  [[nodiscard]] TaskWork work_of_transfer(const Transfer& transfer);

  Program& program_;
  const PricedStep& step_;
  StepPricer& prices_;
  std::vector<PlacedItem> placed_;  // of the list at hand
};

// Writes into one block, whose lanes it adds.
class BlockWriter {
 public:
  BlockWriter(BlockBuilder& block, bool v_shaped);

  // Tasks added from now on belong to this part of the block (TaskInfo::part).
  void begin_part(NameId part) { block_.begin_part(part); }

  TaskId add(LaneIndex lane, const ReadyTask& task, std::span<const Moment> after = {});
  TaskId add(LaneIndex lane, const ReadyTask& task, Moment after) { return add(lane, task, {&after, 1}); }
  // One after the other; the first waits for `after`, if it is given. The last one, if there is one.
  std::optional<TaskId> add(LaneIndex lane, std::span<const ReadyTask> tasks, std::optional<Moment> after);
  // A whole list behind `after`: it begins when all lanes and moments are there, and ends, with the task
  // returned, when everything in it has.
  TaskId add(const ReadyList& list, std::span<const Moment> after, const ReadyTask& begin,
             const ReadyTask& end);

 private:
  BlockBuilder& block_;
  std::vector<LaneId> lanes_;
  std::vector<Moment> waits_;    // of the next task of the computation
  std::vector<TaskId> besides_;  // beside the next task that computes
  std::vector<TaskId> rest_;     // beside all that follows
};

}  // namespace stepcast::detail
