// Builds the blocks of all variants of passes, instantiates them in pipeline order, and joins sends with
// receives. The rules are those of step_schedule.cpp, in terms of tasks and edges.
#include "stepcast/predict/step_program.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stepcast/predict/detail/step_tasks.h"

namespace stepcast {
namespace {

using detail::BlockWriter;
using detail::LaneIndex;
using detail::ReadyList;
using detail::ReadyTask;
using detail::ReadyUnit;
using detail::step_lanes;
using detail::StepTasks;
using enum detail::LaneIndex;

// Slots of a rank class: the ends of the last two units of computation, which limit how early weights are
// gathered.
enum Slot : std::uint16_t { kBefore, kBeforeThat, kSlotCount };

// Passes of a chunk with equal variants have equal tasks and share one block.
struct PassVariant {
  PassKind kind = PassKind::forward;
  std::uint32_t chunk = 0;
  bool gathers = false;  // weight transfers overlap the computation
  bool reduces = false;  // gradient transfers overlap the computation
  auto operator<=>(const PassVariant&) const = default;
};

// A block with its tasks that must be joined with neighbouring stages, if any.
struct PassBlock {
  BlockId block{};
  std::optional<TaskId> receive, send;
};

std::string_view name_of(PassKind kind) {
  switch (kind) {
    case PassKind::forward: return "forward";
    case PassKind::backward: return "backward";
    case PassKind::weight_gradient: return "weight gradients";
  }
  return "backward";
}

BlockRole block_role_of(PassKind kind) {
  switch (kind) {
    case PassKind::forward: return BlockRole::forward;
    case PassKind::backward: return BlockRole::backward;
    case PassKind::weight_gradient: return BlockRole::weight_gradient;
  }
  return BlockRole::backward;
}

// Builds one Program. Blocks are created when the first pass of their variant is added.
class StepProgramBuilder {
 public:
  StepProgramBuilder(std::span<const StagesOfStep> parts, const Layout& layout,
                     std::optional<std::uint32_t> micro_batches, TaskBodies* bodies)
      : step_(*parts.front().step),
        schedule_(step_.schedule),
        shape_(step_.schedule.shape),
        layout_(layout),
        tasks_(program_, step_, *parts.front().pricer),
        bodies_(bodies) {
    shape_.micro_batches = micro_batches.value_or(shape_.micro_batches);
    for (const StagesOfStep& part : parts) {
      pools_.push_back(
          {part.end_stage, *part.step, StepTasks{program_, *part.step, *part.pricer}, {}, {}, {}});
    }
  }

  Result<Program> build();

 private:
  // Tasks that all blocks use between lists.
  struct Joints {
    ReadyTask begin, end;  // begin and end of a unit
    // Between stages: the transfer; the all-gather of received parts; the wait of a blocking sender; the
    // latency to another zone.
    ReadyTask boundary, put_together, sent, late;
    bool puts_together = false;
  };

  // The stages of one pool of GPUs, with the tasks of its layers.
  struct Pool {
    std::uint32_t end_stage = 0;
    const PricedStep& step;
    StepTasks tasks;
    std::vector<ReadyUnit> layers;  // [kind of layer]
    ReadyUnit embedding, head;
  };

  // Creates the tasks of all units and the tasks between lists.
  Status prepare();
  Pool& pool_of(std::size_t stage);
  // The units of a chunk in the order of the model, at the prices of its pool.
  std::vector<const ReadyUnit*> units_of(std::uint32_t chunk);
  std::vector<NameId> names_of_units(std::uint32_t chunk);
  Result<PassBlock> pass_block(const PassVariant& variant);
  // The block of a variant, created at first use.
  Result<const PassBlock*> find(const PassVariant& variant);
  void run_forward(const PassVariant& variant, BlockWriter& block, std::optional<Moment> arrival,
                   std::vector<Moment>& ends);
  void run_backward(const PassVariant& variant, BlockWriter& block, std::optional<Moment> arrival,
                    std::vector<Moment>& ends);
  void run_pass(const PassVariant& variant, BlockWriter& block, std::optional<Moment> arrival,
                std::vector<Moment>& ends);
  // Adds the end of the step to every stage.
  Status add_update(const std::vector<RankClassId>& classes);
  [[nodiscard]] bool can_have_bodies() const;
  Result<std::optional<std::size_t>> body_of(const PassVariant& variant);

  const PricedStep& step_;
  const StepSchedule& schedule_;
  PipelineShape shape_;
  const Layout& layout_;
  const bool v_shaped_ = is_v_shaped(shape_.schedule);
  Program program_;
  StepTasks tasks_;
  std::vector<Pool> pools_;
  Joints joints_;
  std::map<PassVariant, PassBlock> blocks_;
  TaskBodies* bodies_;
  std::map<std::pair<PassKind, std::vector<const ReadyUnit*>>, std::size_t> known_bodies_;
};

Status StepProgramBuilder::prepare() {
  for (Pool& pool : pools_) {
    const PricedStep& step = pool.step;
    for (std::size_t kind = 0; kind < step.layers.size(); ++kind) {
      STEPCAST_ASSIGN(ReadyUnit unit,
                      pool.tasks.unit(*step.work.layer_kinds[kind], step.layers[kind].transfers));
      pool.layers.push_back(std::move(unit));
    }
    STEPCAST_ASSIGN(pool.embedding, pool.tasks.unit(*step.work.embedding, step.embedding.transfers));
    STEPCAST_ASSIGN(pool.head, pool.tasks.unit(*step.work.head, step.head.transfers));
  }
  if (bodies_ != nullptr && !can_have_bodies()) bodies_ = nullptr;
  joints_.begin = tasks_.wait("wait for input and weights");
  joints_.end = tasks_.wait("wait for launches and transfers");
  if (schedule_.shape.stages > 1) {
    joints_.boundary = tasks_.bulk(step_.boundary, TaskKind::collective, "activations to the next stage");
    joints_.puts_together = step_.put_together.time_us > 0;
    if (joints_.puts_together) {
      joints_.put_together = tasks_.bulk(step_.put_together, TaskKind::kernel, "gather parts");
    }
    joints_.sent = tasks_.wait("wait for transfer");
    if (!schedule_.delay_us.empty()) joints_.late = tasks_.wait("wait for another zone");
  }
  return Ok{};
}

StepProgramBuilder::Pool& StepProgramBuilder::pool_of(std::size_t stage) {
  const auto found =
      std::find_if(pools_.begin(), pools_.end(), [&](const Pool& p) { return stage < p.end_stage; });
  return found == pools_.end() ? pools_.back() : *found;
}

std::vector<const ReadyUnit*> StepProgramBuilder::units_of(std::uint32_t chunk) {
  const ChunkWork& work = step_.work.chunks[chunk];
  const Pool& pool = pool_of(stage_of_chunk(shape_.schedule, shape_.stages, chunk));
  std::vector<const ReadyUnit*> units;
  if (work.has_embedding) units.push_back(&pool.embedding);
  for (const ChunkWork::Run& run : work.runs) units.insert(units.end(), run.count, &pool.layers[run.kind]);
  if (work.has_head) units.push_back(&pool.head);
  return units;
}

// Names of the units of a chunk, in the order of units_of(): "embedding", "layer 7" (numbered from 0 over the
// model), "head". Empty if passes are bodies, because chunks share those.
std::vector<NameId> StepProgramBuilder::names_of_units(std::uint32_t chunk) {
  std::vector<NameId> names;
  if (bodies_ != nullptr) return names;
  const auto layers_of = [&](std::uint32_t c) {
    std::uint64_t layers = 0;
    for (const ChunkWork::Run& run : step_.work.chunks[c].runs) layers += run.count;
    return layers;
  };
  std::uint64_t layer = 0;
  for (std::uint32_t c = 0; c < chunk; ++c) layer += layers_of(c);
  if (step_.work.chunks[chunk].has_embedding) names.push_back(program_.names.intern("embedding"));
  for (const std::uint64_t end = layer + layers_of(chunk); layer < end; ++layer)
    names.push_back(program_.names.intern(fmt::format("layer {}", layer)));
  if (step_.work.chunks[chunk].has_head) names.push_back(program_.names.intern("head"));
  return names;
}

// Runs the units in order. The first one waits for the message of the neighbour, each one for its weights.
// `ends`: ends of the units of earlier passes; those of this pass are appended.
void StepProgramBuilder::run_forward(const PassVariant& variant, BlockWriter& block,
                                     std::optional<Moment> arrival, std::vector<Moment>& ends) {
  // FSDP gathers at most two units ahead: a gather waits for the end of the unit before the last one.
  const bool paced = schedule_.gather == WeightGather::every_forward;
  std::vector<Moment> waits;
  const std::vector<const ReadyUnit*> units = units_of(variant.chunk);
  const std::vector<NameId> names = names_of_units(variant.chunk);
  for (std::size_t u = 0; u < units.size(); ++u) {
    const ReadyUnit* unit = units[u];
    if (!names.empty()) block.begin_part(names[u]);
    waits.clear();
    if (arrival) waits.push_back(*arrival);
    arrival.reset();
    if (variant.gathers) {
      const std::optional<Moment> pace = paced ? std::optional{ends[ends.size() - 2]} : std::nullopt;
      const std::optional<TaskId> gathered = block.add(kData, unit->gather, pace);
      if (gathered) waits.push_back(Moment::end_of(*gathered));
    }
    ends.push_back(Moment::end_of(block.add(unit->forward, waits, joints_.begin, joints_.end)));
  }
}

// Runs the units in reverse order. With Prefetch::pre, the weights of the next unit are gathered before the
// backward of the current one, otherwise after it. Gradients of a unit are reduced after its backward.
void StepProgramBuilder::run_backward(const PassVariant& variant, BlockWriter& block,
                                      std::optional<Moment> arrival, std::vector<Moment>& ends) {
  const std::vector<const ReadyUnit*> units = units_of(variant.chunk);
  const bool early = schedule_.backward_prefetch == Prefetch::pre;
  const std::vector<NameId> names = names_of_units(variant.chunk);
  std::optional<TaskId> gathered;
  std::vector<Moment> waits;
  const auto begin_part = [&](std::size_t unit) {
    if (!names.empty()) block.begin_part(names[unit]);
  };
  const auto gather = [&](std::size_t unit) {
    begin_part(unit);
    gathered = block.add(kData, units[unit]->gather, ends.back());
  };
  if (variant.gathers) gather(units.size() - 1);
  for (std::size_t u = units.size(); u-- > 0;) {
    waits.clear();
    if (arrival) waits.push_back(*arrival);
    arrival.reset();
    if (gathered) waits.push_back(Moment::end_of(*gathered));
    if (variant.gathers && u > 0 && early) gather(u - 1);
    begin_part(u);
    const TaskId last = block.add(units[u]->backward, waits, joints_.begin, joints_.end);
    ends.push_back(Moment::end_of(last));
    if (variant.gathers && u > 0 && !early) gather(u - 1);
    begin_part(u);
    if (variant.reduces) block.add(kData, units[u]->reduce, Moment::end_of(last));
  }
}

// The work list of a unit for a kind of pass.
const ReadyList& list_of(const ReadyUnit& unit, PassKind kind) {
  switch (kind) {
    case PassKind::forward: return unit.forward;
    case PassKind::backward: return unit.backward;
    case PassKind::weight_gradient: return unit.held_back;
  }
  return unit.backward;
}

// Whether passes can be replaced by single tasks. Not if every pass gathers weights, since then all interact
// with transfers. Not if computation runs outside of the compute lane.
bool StepProgramBuilder::can_have_bodies() const {
  const auto is_beside = [](const ReadyList::Item& item) {
    return item.computes && item.lane != WorkLane::computation;
  };
  const auto computes_beside = [&](const ReadyUnit& unit) {
    const std::array lists{&unit.forward, &unit.backward, &unit.held_back};
    return std::any_of(lists.begin(), lists.end(), [&](const ReadyList* list) {
      return std::any_of(list->items.begin(), list->items.end(), is_beside);
    });
  };
  return schedule_.gather != WeightGather::every_forward && pools_.size() == 1 &&
         std::none_of(pools_.front().layers.begin(), pools_.front().layers.end(), computes_beside) &&
         !computes_beside(pools_.front().embedding) && !computes_beside(pools_.front().head);
}

// The body of a variant. Nothing if the pass gathers weights or reduces gradients, if its GPU waits for the
// host, or if it has no work.
Result<std::optional<std::size_t>> StepProgramBuilder::body_of(const PassVariant& variant) {
  if (bodies_ == nullptr || variant.gathers || variant.reduces) return std::optional<std::size_t>{};
  const std::vector<const ReadyUnit*> units = units_of(variant.chunk);
  double total_us = 0;
  for (const ReadyUnit* unit : units) {
    const ReadyList& list = list_of(*unit, variant.kind);
    double in_turn_us = 0;
    for (const ReadyList::Item& item : list.items)
      if (item.lane == WorkLane::computation) in_turn_us += item.task.us;
    if (list.launches && list.launches->us > in_turn_us) return std::optional<std::size_t>{};
    total_us += in_turn_us;
  }
  if (!(total_us > 0)) return std::optional<std::size_t>{};
  // Chunks with the same units share one body.
  const auto [known, is_new] = known_bodies_.try_emplace({variant.kind, units});
  if (is_new) {
    BlockBuilder block{std::string{name_of(variant.kind)}, block_role_of(variant.kind)};
    BlockWriter writer{block, v_shaped_};
    std::vector<Moment> ends;
    run_pass(variant, writer, {}, ends);
    STEPCAST_ASSIGN(Block finished, std::move(block).finish());
    known->second = bodies_->add(program_.names, std::move(finished), step_lanes(v_shaped_));
  }
  return std::optional{known->second};
}

// Adds all computation of the pass to a block.
void StepProgramBuilder::run_pass(const PassVariant& variant, BlockWriter& block,
                                  std::optional<Moment> arrival, std::vector<Moment>& ends) {
  switch (variant.kind) {
    case PassKind::forward: run_forward(variant, block, arrival, ends); break;
    case PassKind::backward: run_backward(variant, block, arrival, ends); break;
    case PassKind::weight_gradient: {
      const std::vector<const ReadyUnit*> units = units_of(variant.chunk);
      const std::vector<NameId> names = names_of_units(variant.chunk);
      for (std::size_t u = 0; u < units.size(); ++u) {
        if (!names.empty()) block.begin_part(names[u]);
        if (!units[u]->held_back.items.empty())
          block.add(units[u]->held_back, {}, joints_.begin, joints_.end);
      }
      break;
    }
  }
  block.begin_part(NameId{});
}

// Builds the block of a variant: receive, compute, send.
Result<PassBlock> StepProgramBuilder::pass_block(const PassVariant& variant) {
  const bool forward = variant.kind == PassKind::forward;
  // Weight gradients that are held back neither receive nor send.
  const bool moves = variant.kind != PassKind::weight_gradient && schedule_.shape.stages > 1;
  const auto n_chunks = static_cast<std::uint32_t>(schedule_.chunks.size());
  // In a V-shaped schedule, the chunks at the turn are on the same rank, so there is no transfer.
  const std::uint32_t turn = v_shaped_ ? schedule_.shape.stages : 0;
  const bool is_first = variant.chunk == 0 || variant.chunk == turn;
  const bool is_last = variant.chunk + 1 == n_chunks || variant.chunk + 1 == turn;
  const bool way_back = v_shaped_ && variant.chunk >= turn;
  BlockBuilder block{fmt::format("{} of chunk {}", name_of(variant.kind), variant.chunk),
                     block_role_of(variant.kind)};
  BlockWriter writer{block, v_shaped_};
  const Moment before = BlockBuilder::arrival_at(block.add_in_port("end of the last unit"));
  const Moment before_that = BlockBuilder::arrival_at(block.add_in_port("end of the unit before"));
  std::vector<Moment> ends{before_that, before};
  PassBlock result;

  // A transfer between stages is a task of equal length on both sides.
  const auto transfer = [&](LaneIndex lane, std::optional<Moment> after, std::optional<TaskId>& joined) {
    joined = after ? writer.add(lane, joints_.boundary, *after) : writer.add(lane, joints_.boundary);
    return Moment::end_of(joints_.puts_together ? writer.add(lane, joints_.put_together) : *joined);
  };
  std::optional<Moment> arrival;
  if (moves && !(forward ? is_first : is_last)) {
    const LaneIndex lane = way_back ? (forward ? kReceiveForwardBack : kReceiveBackwardBack)
                                    : (forward ? kReceiveForward : kReceiveBackward);
    arrival = transfer(lane, {}, result.receive);
    const double late_us =
        schedule_.delay_us.empty() ? 0 : schedule_.delay_us[variant.chunk - (forward ? 1 : 0)];
    if (late_us > 0) {
      const TaskId there = writer.add(kCompute, joints_.late);
      block.add_edge(*arrival, there, Microseconds{late_us}, {.origin = EdgeOrigin::dependency});
      arrival = Moment::end_of(there);
    }
  }
  STEPCAST_ASSIGN(const std::optional<std::size_t> body, body_of(variant));
  if (body) {
    const ReadyTask task{bodies_->task(*body), 0};
    const TaskId whole = arrival ? writer.add(kCompute, task, *arrival) : writer.add(kCompute, task);
    if (variant.kind != PassKind::weight_gradient) ends.push_back(Moment::end_of(whole));
  } else {
    run_pass(variant, writer, arrival, ends);
  }
  if (moves && !(forward ? is_last : is_first)) {
    const Moment sent = transfer(forward ? kSendForward : kSendBackward, ends.back(), result.send);
    if (schedule_.boundary_blocks) writer.add(kCompute, joints_.sent, sent);
  }
  // The last two ends pace the gathering of weights in the next pass of the stage.
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

// The end of a step on every stage: remaining gradients are reduced, stages agree on the gradient norm, the
// optimizer runs, weights are gathered.
Status StepProgramBuilder::add_update(const std::vector<RankClassId>& classes) {
  Collective norm_of_all{.kind = CollectiveKind::all, .op = CollectiveOp::all_reduce};
  Collective tied{.kind = CollectiveKind::all,
                  .op = CollectiveOp::all_reduce,
                  .message_bytes = step_.tied_embedding.transfer.message.value()};
  const std::size_t stages = classes.size();
  const bool ties = schedule_.embedding_reduce_us > 0 && stages > 1;
  const bool waits = schedule_.optimizer_waits_for_all && stages > 1;
  for (std::size_t s = 0; s < stages; ++s) {
    Pool& pool = pool_of(s);
    const PricedStep::Update& update = pool.step.update(s);
    STEPCAST_ASSIGN(const ReadyList optimizer, pool.tasks.update(update));
    BlockBuilder block{fmt::format("update of stage {}", s), BlockRole::update};
    BlockWriter writer{block, v_shaped_};
    const TaskId passes = writer.add(kCompute, tasks_.wait("last pass done"));
    std::array<Moment, 1> after{
        Moment::end_of(writer.add(kData, tasks_.wait("gradients there"), Moment::end_of(passes)))};
    if (schedule_.reduce == GradientReduce::at_end) {
      const auto tasks = tasks_.bulk(update.whole.reduce, "reduce gradients");
      if (const auto last = writer.add(kData, tasks, std::nullopt)) after[0] = Moment::end_of(*last);
    }
    std::optional<TaskId> tie, norm;
    if (ties && (s == 0 || s + 1 == stages)) {
      tie =
          writer.add(kData, tasks_.bulk(step_.tied_embedding, TaskKind::collective, "reduce tied embedding"));
      after[0] = Moment::end_of(*tie);
    }
    if (waits) {
      // The norm is a collective without duration: all stages continue when the last one has arrived.
      ReadyTask meet = tasks_.wait("gradient norm");
      meet.info.kind = TaskKind::collective;
      meet.info.kernel_class = KernelClass::communication;
      norm = writer.add(kData, meet);
      after[0] = Moment::end_of(*norm);
    }
    TaskId done = writer.add(optimizer, after, joints_.begin, joints_.end);
    if (schedule_.gather == WeightGather::after_step) {
      const auto tasks = tasks_.bulk(update.whole.gather, "gather weights");
      if (const auto last = writer.add(kData, tasks, Moment::end_of(done))) {
        done = writer.add(kCompute, tasks_.wait("weights there"), Moment::end_of(*last));
      }
    }
    writer.add(kHost, tasks_.between_steps(), Moment::end_of(done));
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

// Adds the instances of all passes in pipeline order, joins sends with receives, and adds the update.
Result<Program> StepProgramBuilder::build() {
  STEPCAST_TRY(prepare());
  const PipelineShape& shape = shape_;
  const std::uint32_t stages = shape.stages;
  const auto ranks = static_cast<std::uint32_t>(layout_.world_size() / std::max<std::int64_t>(1, stages));
  std::vector<RankClassId> classes;
  for (std::uint32_t s = 0; s < stages; ++s) {
    classes.push_back(program_.add_rank_class({.name = fmt::format("pipeline stage {}", s),
                                               .multiplicity = ranks,
                                               .lanes = step_lanes(v_shaped_),
                                               .slot_count = kSlotCount}));
  }
  struct Open {  // one side of a transfer between stages
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
      PassVariant variant{pass.kind, chunk_of_stage(shape.schedule, stages, s, pass.chunk), false, false};
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
      const InstanceId instance =
          program_.add_instance(classes[s], {.block = block->block,
                                             .micro_batch = static_cast<std::int32_t>(pass.micro_batch),
                                             .in_slots = {kBefore, kBeforeThat},
                                             .out_slots = {kBefore, kBeforeThat}});
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
    // The cell of the same micro-batch in the next chunk.
    const std::size_t next = cell + shape.micro_batches;
    if (next < cells) {
      join(sent_forward[cell], received_forward[next]);
      join(sent_backward[next], received_backward[cell]);
    }
  }
  STEPCAST_TRY(add_update(classes));
  if (bodies_ != nullptr) bodies_->finish(program_);
  return std::move(program_);
}

}  // namespace

Result<Program> step_program(const PricedStep& step, const Layout& layout, StepPricer& pricer,
                             std::optional<std::uint32_t> micro_batches) {
  const std::array whole{StagesOfStep{&step, &pricer, step.schedule.shape.stages}};
  return step_program(whole, layout, micro_batches);
}

Result<Program> step_program(std::span<const StagesOfStep> parts, const Layout& layout,
                             std::optional<std::uint32_t> micro_batches, TaskBodies* bodies) {
  return StepProgramBuilder{parts, layout, micro_batches, bodies}.build();
}

std::vector<GroupPlacement> group_placements(const Program& program, const Placement& placement) {
  std::vector<GroupPlacement> places;
  for (const RankGroup& group : program.groups()) {
    GroupPlacement place;
    for (int kind = 0; kind < kGroupKindCount; ++kind) {
      const auto candidate = static_cast<GroupKind>(kind);
      if (to_string(candidate) == group.label) place = group_of(candidate, placement);
    }
    places.push_back(place);
  }
  return places;
}

}  // namespace stepcast
