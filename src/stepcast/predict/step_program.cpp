#include "stepcast/predict/step_program.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace stepcast {
namespace {

// Lanes of every rank class, in this order.
enum LaneIndex : std::uint16_t {
  kCompute,
  kTransfer,  // beside a product: tensor, context and expert parallelism
  kData,      // weights and gradients
  kSendForward,
  kReceiveForward,
  kSendBackward,
  kReceiveBackward,
  kLaneCount
};

std::vector<Lane> lanes() {
  const auto stream = [](const char* name) { return Lane{LaneKind::gpu_stream, name}; };
  return {stream("computation"),      stream("transfers in layers"), stream("weights and gradients"),
          stream("send activations"), stream("receive activations"), stream("send gradients"),
          stream("receive gradients")};
}

// Ends of the last two units of computation, which pace the gathering of weights.
enum Slot : std::uint16_t { kBefore, kBeforeThat, kSlotCount };

// What of a chunk differs between its passes.
struct PassVariant {
  PassKind kind = PassKind::forward;
  std::uint32_t chunk = 0;
  bool gathers = false;  // weights beside the computation
  bool reduces = false;  // gradients beside the computation
  auto operator<=>(const PassVariant&) const = default;
};

// A block under construction, and what its instances have to be joined to.
struct PassBlock {
  BlockId block{};
  std::optional<TaskId> receive, send;
};

class StepProgramBuilder {
 public:
  StepProgramBuilder(const PricedStep& step, const Layout& layout, StepPricer& pricer)
      : step_(step), schedule_(step.schedule), layout_(layout), pricer_(pricer) {}

  Result<Program> build();

 private:
  struct Unit {
    const WorkList* forward;
    const WorkList* backward;
    const ScheduleUnit* times;
  };
  using Lanes = std::vector<LaneId>;

  std::vector<Unit> units_of(std::uint32_t chunk) const;
  Result<PassBlock> pass_block(const PassVariant& variant);
  Result<const PassBlock*> find(const PassVariant& variant);
  // Appends the items of a list; the last task of the computation.
  Result<std::optional<TaskId>> add_items(BlockBuilder& block, const Lanes& lanes, const WorkList& list,
                                          double whole_us, std::optional<Moment> first_waits_for);
  Status add_update(std::vector<RankClassId>& classes);
  TaskInfo info(TaskKind kind, KernelClass kernel_class, std::string_view name) {
    return {.kind = kind, .kernel_class = kernel_class, .name = program_.names.intern(name)};
  }

  const PricedStep& step_;
  const StepSchedule& schedule_;
  const Layout& layout_;
  StepPricer& pricer_;
  Program program_;
  std::map<PassVariant, PassBlock> blocks_;
};

std::vector<StepProgramBuilder::Unit> StepProgramBuilder::units_of(std::uint32_t chunk) const {
  const ChunkWork& work = step_.work.chunks[chunk];
  const std::vector<ScheduleUnit>& times = schedule_.chunks[chunk].units;
  std::vector<Unit> units;
  const auto add = [&](const WorkList& forward, const WorkList& backward) {
    units.push_back({&forward, &backward, &times[units.size()]});
  };
  if (work.has_embedding) add(step_.work.embedding_forward, step_.work.embedding_backward);
  for (const ChunkWork::Run& run : work.runs) {
    const LayerWork& layer = step_.work.layer_kinds[run.kind];
    for (std::uint32_t i = 0; i < run.count; ++i) add(layer.forward, layer.backward);
  }
  if (work.has_head) add(step_.work.head_forward, step_.work.head_backward);
  return units;
}

Result<std::optional<TaskId>> StepProgramBuilder::add_items(BlockBuilder& block, const Lanes& lanes,
                                                            const WorkList& list, double whole_us,
                                                            std::optional<Moment> first_waits_for) {
  double sum = 0;
  std::optional<TaskId> last;  // of the computation
  std::vector<Moment> waits;   // of the next task of the computation
  if (first_waits_for) waits.push_back(*first_waits_for);
  const auto add = [&](LaneIndex lane, TaskInfo task_info, double us) {
    const TaskId task = block.add_task(lanes[lane], task_info, Microseconds{us});
    for (const Moment& moment : waits) block.add_edge(moment, task, Microseconds{}, {});
    return task;
  };
  struct Beside {
    std::string_view name;
    double us;
  };
  std::vector<Beside> beside;
  double beside_us = 0;
  const auto start_beside = [&] {
    // Transfers start with the operation they run beside, one after the other.
    std::vector<Moment> after;
    for (const Beside& transfer : beside) {
      const TaskId task =
          add(kTransfer, info(TaskKind::kernel, KernelClass::communication, transfer.name), transfer.us);
      if (last) block.add_edge(Moment::end_of(*last), task, Microseconds{}, {});
      after.push_back(Moment::end_of(task));
    }
    beside.clear();
    beside_us = 0;
    return after;
  };
  for (const WorkItem& item : list) {
    const auto count = static_cast<double>(item.count);
    if (const Transfer* transfer = item.transfer()) {
      STEPCAST_ASSIGN(const Estimate t, pricer_.price(*transfer, step_.placement));
      const double us = t.time.value() * count;
      if (us <= 0) continue;
      if (item.beside_next) {
        beside.push_back({item.name, us});
        beside_us += us;
        continue;
      }
      last = add(kCompute, info(TaskKind::kernel, KernelClass::communication, item.name), us);
      waits.clear();
      sum += us;
      continue;
    }
    const Operation& operation = *item.operation();
    double us = pricer_.price(operation).time.value() * count;
    if (!beside.empty()) {
      const double covered = us > 0 ? std::min(1.0, beside_us / us) : 0.0;
      us *= 1 + covered * pricer_.assumptions().overlap_slowdown;
    }
    sum += std::max(us, beside_us);
    const std::vector<Moment> after = start_beside();
    last = add(kCompute, info(TaskKind::kernel, kernel_class_of(operation), item.name), us);
    waits = after;
  }
  if (!beside.empty()) {
    sum += beside_us;
    const std::vector<Moment> after = start_beside();
    waits.insert(waits.end(), after.begin(), after.end());
  }
  // The list ends when everything in it has; the host may hold it up longer.
  const double missing = whole_us - sum;
  if (!waits.empty() || missing > 1e-9 * whole_us || !last) {
    last = add(kCompute, info(TaskKind::kernel, KernelClass::other, "wait for launches"),
               std::max(0.0, missing));
  }
  return last;
}

Result<PassBlock> StepProgramBuilder::pass_block(const PassVariant& variant) {
  const bool forward = variant.kind == PassKind::forward;
  BlockBuilder block{fmt::format("{} of chunk {}",
                                 forward                                     ? "forward"
                                 : variant.kind == PassKind::weight_gradient ? "weight gradients"
                                                                             : "backward",
                                 variant.chunk)};
  Lanes lane_ids;
  for (const Lane& lane : lanes()) lane_ids.push_back(block.add_lane(lane));
  const Moment before = BlockBuilder::arrival_at(block.add_in_port("end of the last unit"));
  const Moment before_that = BlockBuilder::arrival_at(block.add_in_port("end of the unit before"));
  std::vector<Moment> ends{before_that, before};  // of units, this pass's behind those of former passes
  PassBlock result;
  std::vector<Unit> units = units_of(variant.chunk);
  const auto n_chunks = static_cast<std::uint32_t>(schedule_.chunks.size());
  const std::uint32_t stages = schedule_.shape.stages;
  const std::uint32_t stage = variant.chunk % stages;

  std::optional<Moment> arrival;
  const bool receives = stages > 1 && variant.kind != PassKind::weight_gradient &&
                        (forward ? variant.chunk > 0 : variant.chunk + 1 < n_chunks);
  const auto hop_us = [&](bool wraps) { return wraps ? schedule_.boundary_wrap_us : schedule_.boundary_us; };
  if (receives) {
    const bool wraps = forward ? stage == 0 : stage + 1 == stages;
    result.receive = block.add_task(lane_ids[forward ? kReceiveForward : kReceiveBackward],
                                    info(TaskKind::collective, KernelClass::communication, "receive"),
                                    Microseconds{hop_us(wraps)});
    arrival = Moment::end_of(*result.receive);
  }
  std::optional<TaskId> last;
  std::optional<Moment> gathered;
  const auto gather = [&](std::size_t unit, std::optional<Moment> not_before) {
    gathered.reset();
    const double us = units[unit].times->gather_us;
    if (us <= 0) return;
    const TaskId task =
        block.add_task(lane_ids[kData], info(TaskKind::kernel, KernelClass::communication, "gather weights"),
                       Microseconds{us});
    if (not_before) block.add_edge(*not_before, task, Microseconds{}, {});
    gathered = Moment::end_of(task);
  };
  // A unit waits for what came from the neighbour and for its weights.
  const auto run = [&](const WorkList& list, double us, std::optional<Moment> weights) -> Status {
    std::optional<Moment> first = weights;
    if (arrival) {
      if (first) {
        const TaskId joined = block.add_task(
            lane_ids[kCompute], info(TaskKind::kernel, KernelClass::other, "wait for input"), Microseconds{});
        block.add_edge(*arrival, joined, Microseconds{}, {});
      } else {
        first = arrival;
      }
      arrival.reset();
    }
    STEPCAST_ASSIGN(last, add_items(block, lane_ids, list, us, first));
    ends.push_back(Moment::end_of(*last));
    return Ok{};
  };
  if (variant.kind == PassKind::weight_gradient) {
    for (const Unit& unit : units) {
      WorkList held_back;
      for (const WorkItem& item : *unit.backward) {
        if (item.weight_gradient) held_back.push_back(item);
      }
      if (held_back.empty() || unit.times->weight_gradient_us <= 0) continue;
      STEPCAST_ASSIGN(last, add_items(block, lane_ids, held_back, unit.times->weight_gradient_us, {}));
    }
  } else if (forward) {
    const bool paced = schedule_.gather == WeightGather::every_forward;
    for (std::size_t u = 0; u < units.size(); ++u) {
      if (variant.gathers) {
        gather(u, paced ? std::optional<Moment>{ends[ends.size() - 2]} : std::nullopt);
      }
      STEPCAST_TRY(
          run(*units[u].forward, units[u].times->forward_us, variant.gathers ? gathered : std::nullopt));
    }
  } else {
    const bool held_back = schedule_.shape.schedule == PipelineSchedule::zero_bubble_h1;
    const bool early = schedule_.backward_prefetch == Prefetch::pre;
    if (variant.gathers) gather(units.size() - 1, ends.back());
    for (std::size_t u = units.size(); u-- > 0;) {
      const std::optional<Moment> weights = gathered;
      if (variant.gathers && u > 0 && early) gather(u - 1, ends.back());
      WorkList now;
      // The embedding and the head hold nothing back.
      const bool layer = units[u].times->weight_gradient_us > 0;
      if (held_back && layer) {
        for (const WorkItem& item : *units[u].backward) {
          if (!item.weight_gradient) now.push_back(item);
        }
      }
      STEPCAST_TRY(run(held_back && layer ? now : *units[u].backward, units[u].times->backward_us,
                       variant.gathers ? weights : std::nullopt));
      if (variant.gathers && u > 0 && !early) gather(u - 1, ends.back());
      if (variant.reduces && units[u].times->reduce_us > 0) {
        const TaskId task = block.add_task(
            lane_ids[kData], info(TaskKind::kernel, KernelClass::communication, "reduce gradients"),
            Microseconds{units[u].times->reduce_us});
        block.add_edge(Moment::end_of(*last), task, Microseconds{}, {});
      }
    }
  }
  const bool sends = stages > 1 && variant.kind != PassKind::weight_gradient &&
                     (forward ? variant.chunk + 1 < n_chunks : variant.chunk > 0);
  if (sends && last) {
    const bool wraps = forward ? stage + 1 == stages : stage == 0;
    result.send = block.add_task(lane_ids[forward ? kSendForward : kSendBackward],
                                 info(TaskKind::collective, KernelClass::communication, "send"),
                                 Microseconds{hop_us(wraps)});
    block.add_edge(Moment::end_of(*last), *result.send, Microseconds{}, {});
    if (schedule_.boundary_blocks) {
      const TaskId wait =
          block.add_task(lane_ids[kCompute], info(TaskKind::kernel, KernelClass::other, "wait for transfer"),
                         Microseconds{});
      block.add_edge(Moment::end_of(*result.send), wait, Microseconds{}, {});
    }
  }
  block.add_out_port("end of the last unit", ends.back());
  block.add_out_port("end of the unit before", ends[ends.size() - 2]);
  STEPCAST_ASSIGN(BlockBuilder::Finished finished, std::move(block).finish_with_map());
  if (result.receive) result.receive = finished.new_id[result.receive->index()];
  if (result.send) result.send = finished.new_id[result.send->index()];
  result.block = program_.add_block(std::move(finished.block));
  return result;
}

Result<const PassBlock*> StepProgramBuilder::find(const PassVariant& variant) {
  if (const auto found = blocks_.find(variant); found != blocks_.end()) return &found->second;
  STEPCAST_ASSIGN(const PassBlock made, pass_block(variant));
  return &blocks_.emplace(variant, made).first->second;
}

// Gradients left to reduce, the norm that all stages share, the update, the weights.
Status StepProgramBuilder::add_update(std::vector<RankClassId>& classes) {
  const auto stages = static_cast<std::uint32_t>(classes.size());
  Collective norm_of_all{.kind = CollectiveKind::all, .op = CollectiveOp::all_reduce};
  Collective tied{.kind = CollectiveKind::all, .op = CollectiveOp::all_reduce};
  const bool ties = schedule_.embedding_reduce_us > 0 && stages > 1;
  const bool waits = schedule_.optimizer_waits_for_all && stages > 1;
  for (std::uint32_t s = 0; s < stages; ++s) {
    BlockBuilder block{fmt::format("update of stage {}", s)};
    Lanes lane_ids;
    for (const Lane& lane : lanes()) lane_ids.push_back(block.add_lane(lane));
    const LaneId data = lane_ids[kData], compute = lane_ids[kCompute];
    const auto task = [&](LaneId lane, TaskKind kind, KernelClass kernel_class, std::string_view name,
                          double us) {
      return block.add_task(lane, info(kind, kernel_class, name), Microseconds{us});
    };
    const TaskId passes = task(compute, TaskKind::kernel, KernelClass::other, "last pass done", 0);
    const bool at_end = schedule_.reduce == GradientReduce::at_end;
    const TaskId reduced = task(data, TaskKind::kernel, KernelClass::communication, "reduce gradients",
                                at_end ? schedule_.reduce_at_end_us[s] : 0);
    block.add_edge(Moment::end_of(passes), reduced, Microseconds{}, {});
    std::optional<TaskId> tie, norm;
    if (ties && (s == 0 || s + 1 == stages)) {
      tie = task(data, TaskKind::collective, KernelClass::communication, "reduce tied embedding",
                 schedule_.embedding_reduce_us);
    }
    if (waits) norm = task(data, TaskKind::collective, KernelClass::communication, "gradient norm", 0);
    const TaskId update =
        task(compute, TaskKind::kernel, KernelClass::elementwise, "optimizer", schedule_.optimizer_us[s]);
    block.add_edge(Moment::end_of(norm ? *norm : tie ? *tie : reduced), update, Microseconds{}, {});
    if (schedule_.gather == WeightGather::after_step) {
      const TaskId weights = task(data, TaskKind::kernel, KernelClass::communication, "gather weights",
                                  schedule_.gather_after_step_us[s]);
      block.add_edge(Moment::end_of(update), weights, Microseconds{}, {});
      const TaskId done = task(compute, TaskKind::kernel, KernelClass::other, "weights there", 0);
      block.add_edge(Moment::end_of(weights), done, Microseconds{}, {});
    }
    task(compute, TaskKind::kernel, KernelClass::other, "between steps", schedule_.fixed_us);
    STEPCAST_ASSIGN(BlockBuilder::Finished finished, std::move(block).finish_with_map());
    const BlockId id = program_.add_block(std::move(finished.block));
    const InstanceId instance = program_.add_instance(classes[s], {.block = id});
    if (tie) tied.members.push_back({classes[s], instance, finished.new_id[tie->index()]});
    if (norm) norm_of_all.members.push_back({classes[s], instance, finished.new_id[norm->index()]});
  }
  if (!tied.members.empty()) program_.add_collective(tied);
  if (!norm_of_all.members.empty()) program_.add_collective(norm_of_all);
  return Ok{};
}

Result<Program> StepProgramBuilder::build() {
  const PipelineShape& shape = schedule_.shape;
  const std::uint32_t stages = shape.stages;
  const auto ranks = static_cast<std::uint32_t>(layout_.world_size() / std::max<std::int64_t>(1, stages));
  std::vector<RankClassId> classes;
  for (std::uint32_t s = 0; s < stages; ++s) {
    classes.push_back(program_.add_rank_class({.name = fmt::format("pipeline stage {}", s),
                                               .multiplicity = ranks,
                                               .lanes = lanes(),
                                               .slot_count = kSlotCount}));
  }
  struct Open {  // one half of a transfer between stages
    CollectiveMember member;
    bool there = false;
  };
  const std::size_t cells = schedule_.chunks.size() * shape.micro_batches;
  std::vector<Open> sent_forward(cells), sent_backward(cells), received_forward(cells),
      received_backward(cells);
  std::vector<PipelinePass> order;
  for (std::uint32_t s = 0; s < stages; ++s) {
    pipeline_order(shape, s, order);
    for (const PipelinePass& pass : order) {
      PassVariant variant{pass.kind, pass.chunk * stages + s, false, false};
      const bool first = pass.micro_batch == 0, last = pass.micro_batch + 1 == shape.micro_batches;
      const bool every = schedule_.gather == WeightGather::every_forward;
      if (pass.kind == PassKind::forward) {
        variant.gathers = every || (first && schedule_.gather == WeightGather::first_forward);
      } else if (pass.kind == PassKind::backward) {
        variant.gathers = every && schedule_.gather_backward;
        variant.reduces = schedule_.reduce == GradientReduce::every_backward ||
                          (last && schedule_.reduce == GradientReduce::last_backward);
      }
      STEPCAST_ASSIGN(const PassBlock* block, find(variant));
      const InstanceId instance = program_.add_instance(
          classes[s],
          {.block = block->block, .in_slots = {kBefore, kBeforeThat}, .out_slots = {kBefore, kBeforeThat}});
      const std::size_t cell = std::size_t{variant.chunk} * shape.micro_batches + pass.micro_batch;
      const bool forward = pass.kind == PassKind::forward;
      if (block->send) {
        (forward ? sent_forward : sent_backward)[cell] = {{classes[s], instance, *block->send}, true};
      }
      if (block->receive) {
        (forward ? received_forward : received_backward)[cell] = {{classes[s], instance, *block->receive},
                                                                  true};
      }
    }
  }
  const auto join = [&](const Open& from, const Open& to) {
    if (!from.there || !to.there) return;
    program_.add_collective({.kind = CollectiveKind::rooted_from,
                             .grouping = CollectiveGrouping::aligned,
                             .root = 0,
                             .op = CollectiveOp::send_receive,
                             .message_bytes = step_.work.boundary.value(),
                             .members = {from.member, to.member}});
  };
  for (std::size_t cell = 0; cell < cells; ++cell) {
    const std::size_t next = cell + shape.micro_batches;
    if (next < cells) {
      join(sent_forward[cell], received_forward[next]);
      join(sent_backward[next], received_backward[cell]);
    }
  }
  STEPCAST_TRY(add_update(classes));
  return std::move(program_);
}

}  // namespace

Result<Program> step_program(const PricedStep& step, const Layout& layout, StepPricer& pricer) {
  return StepProgramBuilder{step, layout, pricer}.build();
}

}  // namespace stepcast
