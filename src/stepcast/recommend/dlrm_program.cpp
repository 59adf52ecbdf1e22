// Writes the step of a recommendation model as a Program. All ranks have the same tasks in the same order;
// the times of lookups and exchanges are left at zero and set per sharding (dlrm_step.cpp). The behaviour of
// each software stack is a set of switches, DlrmBehavior.
#include "stepcast/recommend/dlrm_program.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "stepcast/recommend/detail/dlrm_dense.h"

namespace stepcast {
namespace {

constexpr double kFirstBucketBytes = 1 << 20,
                 kBucketBytes = 25.0 * (1 << 20);  // buckets of DistributedDataParallel

// Host time in microseconds of an operator that launches a kernel in an eager framework: T1 + T2 + T3 + T4 of
// the shipped host tables (A100 39 us, H100 42 us, MI300X 39 us). Each further kernel of the operator takes
// T4 + T5.
constexpr double kOperatorUs = 40, kFurtherKernelUs = 8;
// Host time before the first operator of a step and after the last one, for plain PyTorch. Source: T1 "after
// (step begin)" and "(step end)" of the shipped host table of the H100, 0.5 ms each.
constexpr double kAroundStepUs = 1000;
// Operators of torch.autocast per GEMM: casts of weights and biases, and backward casts of their gradients.
// Source: two of the four DLRMs of data/measured/dry_run.
constexpr double kCastsOfProduct = 2;
constexpr double kLaunchUs = 6;  // host time to launch a kernel from C++
// Operators of TorchRec's input distribution that launch no kernel.
constexpr double kInputOperators = 38;
constexpr double kStreamGapUs = 2.5;  // gap between kernels of a CUDA graph
// First releases in which HugeCTR sorts indices one batch ahead and overlaps exchanges with the dense part:
// for hybrid embeddings, and for tables with several lookups per sample.
constexpr std::int32_t kIndicesBeside = 2109, kCollectionsBeside = 2306;
constexpr double kIndexPasses = 10;  // passes of the hybrid embedding over the indices of the whole batch

// Groups of all ranks, one per kind of exchange, so that waiting time is reported by kind.
struct DlrmGroups {
  GroupId world{}, inputs{}, vectors{}, gradients{}, tables{};
};

// Writes the block of one rank. Every rank gets the same tasks in the same order.
class RankBlock {
 public:
  // `alone`: the job has one rank, so there are no collectives.
  RankBlock(Program& program, const DlrmBehavior& habits, const DlrmTraining& training,
            const DlrmGroups& groups, bool alone)
      : program_(program),
        habits_(habits),
        training_(training),
        groups_(groups),
        alone_(alone),
        block_("step") {
    host_ = block_.add_lane({LaneKind::cpu_thread, "host"});
    compute_ = block_.add_lane({LaneKind::gpu_stream, "computation"});
    exchange_ = block_.add_lane({LaneKind::gpu_stream, "exchange"});
    reduce_ = block_.add_lane({LaneKind::gpu_stream, "gradients"});
    input_ = block_.add_lane({LaneKind::gpu_stream, "inputs"});
    copy_ = block_.add_lane({LaneKind::gpu_stream, "copies"});
    if (habits.weights_beside) weights_ = block_.add_lane({LaneKind::gpu_stream, "gradients of weights"});
    // A stream for tables on every rank. Few shardings have any; their all-reduce must not queue behind that
    // of the dense gradients.
    tables_ = habits.hybrid ? reduce_ : block_.add_lane({LaneKind::gpu_stream, "gradients of tables"});
  }

  // Writes the step in program order. Returns the tasks with times that depend on the sharding.
  DlrmTasks write(const detail::DenseParts& parts) {
    DlrmTasks tasks;
    if (habits_.host_us > 0) {
      block_.add_task(host_, {.kind = TaskKind::cpu_segment, .name = name("between steps")},
                      Microseconds{habits_.host_us});
    }
    run(copy_, parts.next_batch);
    std::vector<Moment> inputs;
    const auto exchange_inputs = [&] {
      tasks.input_exchange =
          collective(input_, "input all-to-all", {}, exchanged(CollectiveOp::all_to_all, groups_.inputs));
    };
    const bool exchanges_inputs = !alone_ && habits_.input_exchange;
    if (exchanges_inputs && !habits_.pipelined_input) {
      exchange_inputs();
      inputs.push_back(Moment::end_of(tasks.input_exchange));
    }
    run(parts.inputs);
    tasks.lookup = kernel("lookup", KernelClass::embedding, 1, inputs);
    std::vector<Moment> vectors{Moment::end_of(tasks.lookup)};
    if (habits_.bottom_on_one_rank) {
      const TaskId bottom = run(parts.bottom);
      if (bottom.valid()) vectors = {Moment::end_of(bottom)};
    }
    if (!alone_) {
      tasks.exchange =
          collective(exchange_, "all-to-all", vectors, exchanged(CollectiveOp::all_to_all, groups_.vectors));
      vectors = {Moment::end_of(tasks.exchange)};
    }
    if (!habits_.bottom_on_one_rank) {
      run(parts.bottom, habits_.one_stream ? std::exchange(vectors, {}) : std::vector<Moment>{});
    }
    run(parts.next_inputs);
    run(parts.interaction, vectors);
    run(parts.top);
    run(parts.loss);
    if (exchanges_inputs && habits_.pipelined_input) {
      // The inputs of the next batch. The host waits for them, because it needs to know how much each rank
      // sends.
      exchange_inputs();
      host_waits_for_ = Moment::end_of(tasks.input_exchange);
    }
    run(parts.top_backward);
    if (habits_.reduces_by_mlp) reduce_now();
    TaskId last = run(parts.interaction_backward);
    if (habits_.one_stream) last = run(parts.bottom_backward);
    std::vector<Moment> gradients{Moment::end_of(last)};
    if (!alone_) {
      tasks.table_reduction = collective(tables_, "all-reduce of tables", gradients,
                                         exchanged(CollectiveOp::all_reduce, groups_.tables));
      tasks.gradient_exchange = collective(exchange_, "all-to-all of gradients", gradients,
                                           exchanged(CollectiveOp::all_to_all, groups_.gradients));
      gradients = {Moment::end_of(tasks.gradient_exchange)};
    }
    // With the bottom MLP on one rank, that rank first needs its gradient from all other ranks.
    run(parts.next_inputs);
    if (!habits_.one_stream) {
      run(parts.bottom_backward, habits_.bottom_on_one_rank ? gradients : std::vector<Moment>{});
      reduce_now();
    }
    if (tasks.table_reduction.valid()) gradients.push_back(Moment::end_of(tasks.table_reduction));
    // A sorted backward pass launches 12 kernels, one with atomic updates 3.
    tasks.lookup_backward =
        kernel("lookup backward", KernelClass::embedding, habits_.sorted_backward ? 12 : 3, gradients);
    ready_after_ = Moment::end_of(tasks.lookup_backward);
    reduce_now();
    if (weights_before_.valid()) reduced_.push_back(Moment::end_of(weights_before_));
    run(parts.update, reduced_);
    return tasks;
  }
  [[nodiscard]] const std::vector<TaskId>& collectives() const { return collectives_; }
  Result<BlockBuilder::Finished> finish() && { return std::move(block_).finish_with_map(); }

 private:
  NameId name(std::string_view text) { return program_.names.intern(text); }

  // A collective of unknown size; the sharding determines it.
  WorkId exchanged(CollectiveOp op, GroupId group) {
    return program_.works.intern(CollectiveWork{op, DType::unknown, Bytes{}, group});
  }

  // Adds a collective on all ranks. It starts after the moments in `after`.
  TaskId collective(LaneId lane, std::string_view what, const std::vector<Moment>& after, WorkId work = {}) {
    const Moment launched = launch(1);
    const TaskId task = block_.add_task(lane,
                                        {.kind = TaskKind::collective,
                                         .kernel_class = KernelClass::communication,
                                         .name = name(what),
                                         .work = work},
                                        Microseconds{});
    if (launched != Moment{}) block_.add_edge(launched, task, Microseconds{}, {.origin = EdgeOrigin::launch});
    for (const Moment moment : after) block_.add_edge(moment, task, Microseconds{}, {});
    collectives_.push_back(task);
    return task;
  }

  // Adds the host time to launch `kernels` kernels and returns the moment at which they are launched (none
  // with CUDA graphs). `further`: all of them belong to the operator before. `in_front_us`: operators without
  // kernels in front of it.
  Moment launch(double kernels, bool further = false, double in_front_us = 0) {
    if (habits_.graphs) return {};
    const double first_us = further ? habits_.further_kernel_us : habits_.operator_us;
    const double us = in_front_us + first_us + (kernels - 1) * habits_.further_kernel_us;
    const TaskId task =
        block_.add_task(host_, {.kind = TaskKind::cpu_segment, .name = name("operator")}, Microseconds{us});
    if (const Moment waited = std::exchange(host_waits_for_, {}); waited != Moment{})
      block_.add_edge(waited, task, Microseconds{}, {.origin = EdgeOrigin::synchronization});
    return Moment::end_of(task);
  }

  // Adds a kernel with a time that the sharding sets. `kernels` is the number of launches it represents.
  TaskId kernel(std::string_view what, KernelClass kernel_class, double kernels,
                const std::vector<Moment>& after) {
    return on_gpu(compute_, {.kind = TaskKind::kernel, .kernel_class = kernel_class, .name = name(what)},
                  launch(kernels), after);
  }

  // Adds a task on a stream. On the compute stream it starts a stream gap after the previous kernel.
  TaskId on_gpu(LaneId lane, const TaskInfo& info, const Moment& launched, const std::vector<Moment>& after) {
    const TaskId task = block_.add_task(lane, info, Microseconds{});
    if (launched != Moment{}) block_.add_edge(launched, task, Microseconds{}, {.origin = EdgeOrigin::launch});
    for (const Moment moment : after) block_.add_edge(moment, task, Microseconds{}, {});
    if (lane != compute_) return task;
    if (habits_.stream_gap_us > 0 && before_.valid()) {
      block_.add_edge(Moment::end_of(before_), task, Microseconds{habits_.stream_gap_us},
                      {.origin = EdgeOrigin::stream_order});
    }
    before_ = task;
    return task;
  }

  TaskId run(const std::vector<detail::DenseOp>& ops, std::vector<Moment> after = {}) {
    return run(compute_, ops, std::move(after));
  }
  // Adds operations in order. `after` delays the first one. Gradients are reduced when a bucket is full.
  // Returns the last task.
  TaskId run(LaneId lane, const std::vector<detail::DenseOp>& ops, std::vector<Moment> after = {}) {
    TaskId last{};
    for (const detail::DenseOp& op : ops) {
      const double kernels = std::max(1.0, static_cast<double>(work_of(op.operation).kernels));
      const bool copies = std::holds_alternative<TransferShape>(op.operation.shape);
      const TaskInfo info{.kind = copies ? TaskKind::memcpy : TaskKind::kernel,
                          .kernel_class = kernel_class_of(op.operation),
                          .name = name(op.name),
                          .work = program_.works.intern(op.operation),
                          .work_times = op.share};
      ready_bytes_ += op.gradient_elements * gradient_bytes();
      if (op.beside) {
        std::vector<Moment> fork = after;
        if (before_.valid()) fork.push_back(Moment::end_of(before_));
        weights_before_ = on_gpu(weights_, info, launch(kernels), fork);
        continue;
      }
      const double casts_us = info.kernel_class == KernelClass::gemm ? habits_.casts_us : 0;
      last = on_gpu(lane, info, launch(kernels, op.further, casts_us), after);
      after.clear();
      ready_after_ = Moment::end_of(last);
      const double full = first_bucket_ ? kFirstBucketBytes : kBucketBytes;
      if (!habits_.reduces_by_mlp && !habits_.one_stream && ready_bytes_ >= full) reduce_now();
    }
    return last;
  }

  // Bytes per element of gradients on the links.
  [[nodiscard]] double gradient_bytes() const {
    return element_size(habits_.exchanged(training_.dtype)).value();
  }

  // Adds the all-reduce of all gradients that are ready and not yet reduced.
  void reduce_now() {
    if (alone_ || ready_bytes_ <= 0) return;
    first_bucket_ = false;
    const WorkId work = program_.works.intern(CollectiveWork{CollectiveOp::all_reduce,
                                                             gradient_bytes() < 4 ? DType::fp16 : DType::fp32,
                                                             Bytes{ready_bytes_}, groups_.world});
    std::vector<Moment> ready{ready_after_};
    if (weights_before_.valid()) ready.push_back(Moment::end_of(weights_before_));
    const TaskId task = collective(reduce_, "all-reduce", ready, work);
    reduced_ = {Moment::end_of(task)};
    ready_bytes_ = 0;
  }

  Program& program_;
  const DlrmBehavior& habits_;
  const DlrmTraining& training_;
  const DlrmGroups& groups_;
  bool alone_;
  BlockBuilder block_;
  LaneId host_{}, compute_{}, exchange_{}, reduce_{}, input_{}, copy_{}, tables_{}, weights_{};
  std::vector<TaskId> collectives_;
  double ready_bytes_ = 0;
  Moment ready_after_{};
  bool first_bucket_ = true;
  std::vector<Moment> reduced_;
  TaskId before_{};          // last task on the compute stream
  TaskId weights_before_{};  // last task on the stream of weight gradients
  Moment host_waits_for_{};  // the host waits for this before its next launch
};

}  // namespace

// What each stack does. For HugeCTR, the release decides whether exchanges overlap the dense part.
DlrmBehavior habits_of(const DlrmTraining& training, const StepAssumptions& assumptions, bool one_hot) {
  DlrmBehavior h;
  switch (training.stack) {
    case DlrmStack::pytorch:
    case DlrmStack::torchrec:
      h.operator_us = kOperatorUs;
      h.further_kernel_us = kFurtherKernelUs;
      h.host_us = training.stack == DlrmStack::torchrec
                      ? assumptions.step_fixed_us + kInputOperators * kOperatorUs
                      : kAroundStepUs;
      if (element_size(training.dtype).value() < 4) h.casts_us = kCastsOfProduct * kOperatorUs;
      h.pipelined_input = h.replicated_apart = training.stack == DlrmStack::torchrec;
      h.eager = !training.cuda_graphs;
      if (training.cuda_graphs) {
        h.graphs = true;
        h.host_us = h.casts_us = 0;
        h.stream_gap_us = kStreamGapUs;
      }
      break;
    case DlrmStack::nvidia:
      h.graphs = h.fused_interaction = h.half_exchange = h.bottom_on_one_rank = h.casts_vectors = true;
      h.sorted_backward = false;
      h.stream_gap_us = kStreamGapUs;
      break;
    case DlrmStack::hugectr:
      h.graphs = h.fused_forward = h.fused_interaction = h.half_exchange = h.reduces_by_mlp = h.hybrid = true;
      h.sorted_backward = h.input_exchange = false;
      h.stream_gap_us = kStreamGapUs;
      h.reduces_in_node = true;
      h.places_vectors = true;
      h.index_passes = kIndexPasses;
      if (const std::int32_t since = one_hot ? kIndicesBeside : kCollectionsBeside;
          training.release == 0 || training.release >= since) {
        h.indices_beside = true;
      } else {
        h.one_stream = true;
      }
      h.weights_beside = !h.one_stream;
      break;
    case DlrmStack::hugectr_2:
      h.fused_interaction = h.half_exchange = h.one_stream = h.places_vectors = true;
      h.sorted_backward = h.input_exchange = false;
      h.operator_us = h.further_kernel_us = kLaunchUs;
      break;
  }
  return h;
}

// The upper limit bounds the size of the Program.
Status check_dlrm_ranks(std::int64_t n_ranks) {
  if (n_ranks >= 1 && n_ranks <= 4096) return Ok{};
  return Error::at("", "GPUs").found(fmt::format("{}", n_ranks)).expected("1 to 4096");
}

Result<DlrmProgram> dlrm_program(const Dlrm& model, const DlrmTraining& training, const DlrmBehavior& habits,
                                 std::int64_t n_ranks) {
  STEPCAST_TRY(model.check());
  STEPCAST_TRY(check_dlrm_ranks(n_ranks));
  if (training.global_batch < n_ranks) {
    return Error::at("", "global_batch")
        .found(fmt::format("{} samples on {} GPUs", training.global_batch, n_ranks))
        .expected("at least one sample per GPU");
  }
  DlrmProgram result;
  std::vector<std::uint32_t> ranks(static_cast<std::size_t>(n_ranks));
  std::iota(ranks.begin(), ranks.end(), 0U);
  const auto group = [&](std::string_view label) {
    return result.program.add_group({.label = std::string{label}, .ranks = ranks});
  };
  const DlrmGroups groups{group("world"), group(DlrmTasks::kInputs), group(DlrmTasks::kVectors),
                          group(DlrmTasks::kGradients), group(DlrmTasks::kTables)};
  const detail::DenseParts parts = detail::dense_parts(model, training, habits, n_ranks);
  std::vector<Collective> collectives;
  for (std::int64_t r = 0; r < n_ranks; ++r) {
    RankBlock writer{result.program, habits, training, groups, n_ranks == 1};
    result.tasks = writer.write(parts);
    const std::vector<TaskId> joined = writer.collectives();
    STEPCAST_ASSIGN(BlockBuilder::Finished finished, std::move(writer).finish());
    const std::vector<Lane> lanes{finished.block.lanes().begin(), finished.block.lanes().end()};
    const BlockId block = result.program.add_block(std::move(finished.block));
    result.blocks.push_back(block);
    const RankClassId rank = result.program.add_rank_class(
        {.name = fmt::format("rank {}", r), .multiplicity = 1, .lanes = lanes, .recorded_rank = -1});
    const InstanceId instance = result.program.add_instance(rank, {.block = block});
    if (collectives.empty()) collectives.resize(joined.size());
    for (std::size_t k = 0; k < joined.size(); ++k) {
      const TaskInfo& info = result.program.block(block).tasks()[joined[k].index()];
      collectives[k].name = info.name;
      if (const CollectiveWork* work = result.program.works.collective(info.work)) {
        collectives[k].op = work->op;
        if (work->message.value() > 0) collectives[k].message_bytes = work->message.value();
      }
      collectives[k].members.push_back({rank, instance, joined[k]});
    }
  }
  for (Collective& collective : collectives) result.program.add_collective(std::move(collective));
  return result;
}

}  // namespace stepcast
