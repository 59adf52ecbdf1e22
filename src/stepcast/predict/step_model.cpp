#include "stepcast/predict/step_model.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <utility>

#include <fmt/core.h>

namespace stepcast {
namespace {

// Share of the bands of kernels and transfers that they have in common and that does not cancel. Assumed.
constexpr double kCorrelatedShare = 0.3;
// The fast end of the band of work that waits for its launches, as a share of what host_launch_us says. Assumed.
constexpr double kFastestLaunchShare = 0.7;
// What is only assumed errs further to the slow side, by this much. Assumed.
constexpr double kSlowSideOfAssumed = 1.5;

bool is_hopper_or_newer(const Device& device) {
  return same_name(device.architecture, "hopper") || same_name(device.architecture, "blackwell");
}

// Splits a backward list into what the next stage waits for and the weight gradients.
std::pair<WorkList, WorkList> split_weight_gradients(const WorkList& backward) {
  std::pair<WorkList, WorkList> parts;
  for (const WorkItem& item : backward) {
    (item.weight_gradient ? parts.second : parts.first).push_back(item);
  }
  return parts;
}

void apply_host_floor(PricedList& list, double launch_us) {
  const double missing = list.kernels * launch_us - list.time_us;
  if (missing <= 0) return;
  list.host_us += missing;
  list.time_us += missing;
  list.low_us = std::max(list.low_us, kFastestLaunchShare * list.time_us);
  list.high_us = std::max(list.high_us, list.time_us);
}

double sum(const std::array<double, kKernelClassCount>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

}  // namespace

double StepShares::computation_us() const { return sum(class_us); }
double StepShares::exposed_communication_us() const {
  return std::accumulate(exposed_us.begin(), exposed_us.end(), 0.0);
}
double StepShares::total_us() const {
  return computation_us() + exposed_communication_us() + host_us + bubble_us + optimizer_us + fixed_us;
}

double StepPrediction::tokens_per_second() const { return tokens_per_step / step.time.value() * 1e6; }
double StepPrediction::flops_per_second_per_gpu() const {
  return model_flops / static_cast<double>(n_gpus) / step.time.value() * 1e6;
}
std::optional<double> StepPrediction::model_flops_utilization() const {
  if (!peak) return std::nullopt;
  return flops_per_second_per_gpu() / peak->value();
}
std::optional<double> StepPrediction::hardware_flops_utilization() const {
  if (!peak || model_flops <= 0) return std::nullopt;
  return flops_per_second_per_gpu() / peak->value() * hardware_flops / model_flops;
}

Layout with_software_choices(Layout layout, const Device& device) {
  if (layout.layer.attention_kernel == AttentionKernel::any) {
    const bool hopper = is_hopper_or_newer(device);
    switch (layout.software.framework) {
      // Transformer Engine takes cuDNN's fused attention on Hopper.
      case Framework::nemo:
      case Framework::megatron:
        layout.layer.attention_kernel = hopper ? AttentionKernel::flash3 : AttentionKernel::flash2;
        break;
      // LLM Foundry and Composer of 2023: Triton or FlashAttention 1.
      case Framework::fsdp:
        layout.layer.attention_kernel =
            layout.software.date >= "2024" ? AttentionKernel::flash2 : AttentionKernel::flash1;
        break;
      // PyTorch's scaled_dot_product_attention.
      case Framework::torchtitan:
      case Framework::deepspeed:
      case Framework::libai:
      case Framework::unknown: layout.layer.attention_kernel = AttentionKernel::flash2; break;
    }
  }
  return layout;
}

struct StepModel::Impl {
  Impl(const Platform& platform, const StepAssumptions& assumptions) : pricer(platform, assumptions) {}

  Result<PricedStep> price(const Transformer& model, const Layout& given);
  Status price_transfers(const Layout& layout, PricedStep& step);
  void fill_units(const Layout& layout, PricedStep& step);
  Result<double> transfer_us(CollectiveOp op, GroupKind group, double bytes, double bucket_bytes,
                             const Placement& placement);
  struct Sharded {
    double gather_us = 0, reduce_us = 0;
  };
  Result<Sharded> data_parallel_us(const Layout& layout, const PricedStep& step, double dense, double expert,
                                   bool whole);

  StepPricer pricer;
  ScheduleEvaluator evaluator;
};

Result<double> StepModel::Impl::transfer_us(CollectiveOp op, GroupKind group, double bytes,
                                            double bucket_bytes, const Placement& placement) {
  if (bytes <= 0) return 0.0;
  // Pieces smaller than a bucket travel together with their neighbours.
  const double message = std::max(bytes, bucket_bytes);
  STEPCAST_ASSIGN(const Estimate t, pricer.price(Transfer{op, group, Bytes{message}}, placement));
  return t.time.value() * bytes / message;
}

// Weights and gradients of `dense` and `expert` parameters of one rank.
Result<StepModel::Impl::Sharded> StepModel::Impl::data_parallel_us(const Layout& layout,
                                                                   const PricedStep& step, double dense,
                                                                   double expert, bool whole) {
  const GradientTraffic traffic = gradient_traffic(layout);
  double bucket = 0;
  if (!whole) {
    bucket = static_cast<double>(layout.sharding.bucket_parameters.value_or(
        std::max<std::int64_t>(40'000'000, 1'000'000 * layout.degrees.data)));
    // FSDP moves the weights of a layer together, whatever their size.
    if (layout.sharding.kind == Sharding::zero3 || layout.sharding.kind == Sharding::zero2) bucket = 0;
  }
  // Hybrid sharding: weights are gathered within a copy of them, gradients scattered within it, and their
  // shards summed over the copies.
  const bool hybrid = layout.sharding.kind != Sharding::none && step.placement.replicate.n_ranks > 1;
  std::optional<Placement> of_copy, over_copies;
  if (hybrid) {
    of_copy = over_copies = step.placement;
    of_copy->data_context = step.placement.shard;
    over_copies->data_context = step.placement.replicate;
  }
  Sharded result;
  const auto add = [&](double parameters, GroupKind group) -> Status {
    if (parameters <= 0) return Ok{};
    const bool split = hybrid && group == GroupKind::data;
    const Placement& placement = split ? *of_copy : step.placement;
    const CollectiveOp reduce =
        layout.sharding.kind == Sharding::none ? CollectiveOp::all_reduce : CollectiveOp::reduce_scatter;
    STEPCAST_ASSIGN(const double reduce_us,
                    transfer_us(reduce, group, parameters * traffic.reduce_bytes_per_parameter,
                                bucket * traffic.reduce_bytes_per_parameter, placement));
    result.reduce_us += reduce_us;
    if (layout.sharding.kind == Sharding::none) return Ok{};
    if (split) {
      const double part = traffic.reduce_bytes_per_parameter / static_cast<double>(layout.shard_group());
      STEPCAST_ASSIGN(const double sum_us, transfer_us(CollectiveOp::all_reduce, group, parameters * part,
                                                       bucket * part, *over_copies));
      result.reduce_us += sum_us;
    }
    STEPCAST_ASSIGN(
        const double gather_us,
        transfer_us(CollectiveOp::all_gather, group, parameters * traffic.gather_bytes_per_parameter,
                    bucket * traffic.gather_bytes_per_parameter, placement));
    result.gather_us += gather_us;
    return Ok{};
  };
  STEPCAST_TRY(add(dense, GroupKind::data));
  STEPCAST_TRY(add(expert, layout.degrees.expert > 1 ? GroupKind::expert_data : GroupKind::data));
  return result;
}

void StepModel::Impl::fill_units(const Layout& layout, PricedStep& step) {
  const bool held_back = layout.pipeline.schedule == PipelineSchedule::zero_bubble_h1;
  StepSchedule& schedule = step.schedule;
  schedule.chunks.clear();
  for (const ChunkWork& chunk : step.work.chunks) {
    ScheduleChunk priced;
    if (chunk.has_embedding) {
      priced.units.push_back({step.embedding_forward.time_us, step.embedding_backward.time_us, 0, 0, 0});
    }
    for (const ChunkWork::Run& run : chunk.runs) {
      const PricedStep::Layer& layer = step.layers[run.kind];
      priced.units.insert(priced.units.end(), run.count,
                          {layer.forward.time_us, layer.backward.time_us,
                           held_back ? layer.weight_gradient.time_us : 0, 0, 0});
    }
    if (chunk.has_head) {
      priced.units.push_back({step.head_forward.time_us, step.head_backward.time_us, 0, 0, 0});
    }
    schedule.chunks.push_back(std::move(priced));
  }
}

Status StepModel::Impl::price_transfers(const Layout& layout, PricedStep& step) {
  StepSchedule& schedule = step.schedule;
  const std::uint32_t stages = step.work.stages;
  const bool data_parallel = step.placement.data_context.n_ranks > 1;

  schedule.gather = WeightGather::none;
  schedule.reduce = GradientReduce::none;
  if (data_parallel) {
    schedule.reduce =
        layout.sharding.overlap_gradient_reduce ? GradientReduce::last_backward : GradientReduce::at_end;
    switch (layout.sharding.kind) {
      case Sharding::none: break;
      case Sharding::zero1:
        schedule.gather =
            layout.sharding.overlap_parameter_gather ? WeightGather::first_forward : WeightGather::after_step;
        break;
      case Sharding::zero2:
      case Sharding::zero3: {
        // With a pipeline the weights stay from the first micro-batch to the last.
        const bool every =
            layout.sharding.kind == Sharding::zero3 && stages == 1 && layout.sharding.reshard_after_forward;
        schedule.gather = every ? WeightGather::every_forward : WeightGather::first_forward;
        schedule.gather_backward = every;
        schedule.reduce = stages == 1 && layout.sharding.reduce_every_micro_batch
                              ? GradientReduce::every_backward
                              : GradientReduce::last_backward;
        break;
      }
    }
  }
  schedule.backward_prefetch = layout.sharding.backward_prefetch;

  // Per unit.
  if (data_parallel) {
    std::vector<Sharded> kinds;
    for (const LayerWork& layer : step.work.layer_kinds) {
      STEPCAST_ASSIGN(const Sharded t,
                      data_parallel_us(layout, step, layer.dense_parameters, layer.expert_parameters, false));
      kinds.push_back(t);
    }
    STEPCAST_ASSIGN(const Sharded embedding,
                    data_parallel_us(layout, step, step.work.embedding_parameters, 0, false));
    STEPCAST_ASSIGN(const Sharded head, data_parallel_us(layout, step, step.work.head_parameters, 0, false));
    for (std::size_t c = 0; c < schedule.chunks.size(); ++c) {
      const ChunkWork& chunk = step.work.chunks[c];
      std::vector<ScheduleUnit>& units = schedule.chunks[c].units;
      std::size_t u = 0;
      const auto set = [&](const Sharded& t) {
        units[u].gather_us = t.gather_us;
        units[u].reduce_us = t.reduce_us;
        ++u;
      };
      if (chunk.has_embedding) set(embedding);
      for (const ChunkWork::Run& run : chunk.runs) {
        for (std::uint32_t i = 0; i < run.count; ++i) set(kinds[run.kind]);
      }
      if (chunk.has_head) set(head);
    }
  }

  // Per stage.
  schedule.reduce_at_end_us.assign(stages, 0);
  schedule.gather_after_step_us.assign(stages, 0);
  schedule.optimizer_us.assign(stages, 0);
  step.optimizer.clear();
  step.optimizer.reserve(stages);
  const double shards = layout.sharding.kind == Sharding::none
                            ? 1.0
                            : static_cast<double>(std::max<std::int64_t>(1, layout.shard_group()));
  const double expert_shards =
      layout.sharding.kind == Sharding::none
          ? 1.0
          : static_cast<double>(std::max<std::int64_t>(1, layout.expert_data_parallel()));
  double dense_before = -1, expert_before = -1;
  for (std::uint32_t s = 0; s < stages; ++s) {
    double dense = 0, expert = 0;
    for (std::size_t c = s; c < step.work.chunks.size(); c += stages) {
      dense += step.work.chunks[c].dense_parameters;
      expert += step.work.chunks[c].expert_parameters;
    }
    if (dense == dense_before && expert == expert_before) {  // as most stages
      schedule.reduce_at_end_us[s] = schedule.reduce_at_end_us[s - 1];
      schedule.gather_after_step_us[s] = schedule.gather_after_step_us[s - 1];
      schedule.optimizer_us[s] = schedule.optimizer_us[s - 1];
      step.optimizer.push_back(PricedList{step.optimizer.back()});
      continue;
    }
    dense_before = dense;
    expert_before = expert;
    if (data_parallel) {
      STEPCAST_ASSIGN(const Sharded whole, data_parallel_us(layout, step, dense, expert, true));
      schedule.reduce_at_end_us[s] = whole.reduce_us;
      schedule.gather_after_step_us[s] = whole.gather_us;
    }
    STEPCAST_ASSIGN(
        PricedList update,
        pricer.price(optimizer_work(layout, dense / shards, expert / expert_shards), step.placement));
    schedule.optimizer_us[s] = update.time_us;
    step.optimizer.push_back(update);
  }

  // Between stages.
  schedule.boundary_us = schedule.boundary_wrap_us = 0;
  schedule.boundary_blocks = !layout.pipeline.overlap;
  if (stages > 1) {
    STEPCAST_ASSIGN(const Estimate t, pricer.price(Transfer{CollectiveOp::send_receive, GroupKind::pipeline,
                                                            step.work.boundary},
                                                   step.placement));
    schedule.boundary_us = schedule.boundary_wrap_us = t.time.value();
    // Scatter-gather: the receiving tensor-parallel group puts the parts together again.
    if (layout.pipeline.p2p_scatter_gather && !layout.layer.sequence_parallel && layout.degrees.tensor > 1) {
      const double whole = step.work.boundary.value() * static_cast<double>(layout.degrees.tensor);
      STEPCAST_ASSIGN(
          const Estimate gather,
          pricer.price(Transfer{CollectiveOp::all_gather, GroupKind::tensor, Bytes{whole}}, step.placement));
      schedule.boundary_us += gather.time.value();
      schedule.boundary_wrap_us += gather.time.value();
    }
  }
  return Ok{};
}

Result<PricedStep> StepModel::Impl::price(const Transformer& model, const Layout& given) {
  const Layout layout = with_software_choices(given, pricer.platform().device);
  PricedStep step;
  STEPCAST_ASSIGN(step.work, step_work(model, layout));
  STEPCAST_ASSIGN(step.placement, place(layout, pricer.platform().node.gpus_per_node));
  const StepAssumptions& assume = pricer.assumptions();
  const double launch = layout.layer.fused.compiled ? assume.compiled_host_launch_us : assume.host_launch_us;
  const auto priced = [&](const WorkList& list) -> Result<PricedList> {
    STEPCAST_ASSIGN(PricedList result, pricer.price(list, step.placement));
    apply_host_floor(result, launch);
    return result;
  };
  const bool held_back = layout.pipeline.schedule == PipelineSchedule::zero_bubble_h1;
  for (const LayerWork& layer : step.work.layer_kinds) {
    PricedStep::Layer times;
    STEPCAST_ASSIGN(times.forward, priced(layer.forward));
    if (held_back) {
      const auto [now, later] = split_weight_gradients(layer.backward);
      STEPCAST_ASSIGN(times.backward, priced(now));
      STEPCAST_ASSIGN(times.weight_gradient, priced(later));
    } else {
      STEPCAST_ASSIGN(times.backward, priced(layer.backward));
    }
    step.layers.push_back(times);
  }
  STEPCAST_ASSIGN(step.embedding_forward, priced(step.work.embedding_forward));
  STEPCAST_ASSIGN(step.embedding_backward, priced(step.work.embedding_backward));
  STEPCAST_ASSIGN(step.head_forward, priced(step.work.head_forward));
  STEPCAST_ASSIGN(step.head_backward, priced(step.work.head_backward));

  StepSchedule& schedule = step.schedule;
  schedule.shape = {layout.pipeline.schedule, step.work.stages, step.work.virtual_stages,
                    step.work.micro_batches};
  STEPCAST_TRY(check(schedule.shape));
  schedule.fixed_us = assume.step_fixed_us;
  schedule.optimizer_waits_for_all = layout.optimizer.gradient_clip;
  fill_units(layout, step);
  STEPCAST_TRY(price_transfers(layout, step));
  if (model.tied_embeddings && step.work.stages > 1) {
    const double bytes = static_cast<double>(padded_vocab_size(model, layout)) /
                         static_cast<double>(layout.degrees.tensor) * static_cast<double>(model.hidden_size) *
                         gradient_traffic(layout).reduce_bytes_per_parameter;
    STEPCAST_ASSIGN(schedule.embedding_reduce_us,
                    transfer_us(CollectiveOp::all_reduce, GroupKind::embedding, bytes, 0, step.placement));
  }
  return step;
}

StepModel::StepModel(const Platform& platform, const StepAssumptions& assumptions)
    : impl_(std::make_unique<Impl>(platform, assumptions)) {}
StepModel::StepModel(StepModel&&) noexcept = default;
StepModel& StepModel::operator=(StepModel&&) noexcept = default;
StepModel::~StepModel() = default;

StepPricer& StepModel::pricer() { return impl_->pricer; }

void StepModel::set_assumptions(const StepAssumptions& assumptions) {
  impl_->pricer.set_assumptions(assumptions);
}

Result<PricedStep> StepModel::price(const Transformer& model, const Layout& layout) {
  return impl_->price(model, layout);
}

Result<StepPrediction> StepModel::predict(const Transformer& model, const Layout& layout) {
  STEPCAST_ASSIGN(const PricedStep step, impl_->price(model, layout));
  StepPrediction result;
  result.times = impl_->evaluator.evaluate(step.schedule);
  const std::uint32_t critical = result.times.critical_stage;
  const StageTimes& stage = result.times.stages[critical];

  // What the critical stage computes.
  PricedList passes;
  double model_flops = 0, all_flops = 0;
  const double micro_batches = step.work.micro_batches;
  for (std::size_t c = 0; c < step.work.chunks.size(); ++c) {
    const ChunkWork& chunk = step.work.chunks[c];
    const bool is_critical = c % step.work.stages == critical;
    double forward_flops = 0, flops = 0;
    const auto add = [&](const PricedList& forward, const PricedList& backward, double count) {
      forward_flops += forward.flops * count;
      flops += (forward.flops + backward.flops) * count;
      if (!is_critical) return;
      passes += forward.times(count * micro_batches);
      passes += backward.times(count * micro_batches);
    };
    if (chunk.has_embedding) add(step.embedding_forward, step.embedding_backward, 1);
    for (const ChunkWork::Run& run : chunk.runs) {
      const PricedStep::Layer& layer = step.layers[run.kind];
      add(layer.forward, layer.backward, run.count);
      flops += layer.weight_gradient.flops * run.count;
      if (is_critical) passes += layer.weight_gradient.times(run.count * micro_batches);
    }
    if (chunk.has_head) add(step.head_forward, step.head_backward, 1);
    // Attention's backward has 5/2 of its forward's products as run, but 2 as the model defines it.
    model_flops += 3 * forward_flops * micro_batches;
    all_flops += flops * micro_batches;
  }
  StepShares& shares = result.shares;
  shares.class_us = passes.class_us;
  shares.exposed_us = passes.exposed_us;
  shares.host_us = passes.host_us;
  const auto group = [&](GroupKind kind) -> double& {
    return shares.exposed_us[static_cast<std::size_t>(kind)];
  };
  group(GroupKind::data) += stage.weights_us + stage.reduce_us + stage.gather_us;
  group(GroupKind::pipeline) += stage.boundary_us;
  shares.optimizer_us = stage.optimizer_us;
  shares.fixed_us = step.schedule.fixed_us;
  shares.bubble_us = result.times.step_us - shares.fixed_us - stage.end_us + stage.idle_us;
  if (step.work.stages == 1) {
    // Nothing to wait for but the transfers counted above.
    shares.bubble_us = std::max(0.0, shares.bubble_us);
  }

  // The band: what the parts say, all erring together, and what the structure leaves out.
  const double time = result.times.step_us;
  const double low = passes.time_us > 0 ? 1 - passes.low_us / passes.time_us : 0;
  const double high = passes.time_us > 0 ? passes.high_us / passes.time_us - 1 : 0;
  const StepAssumptions& assume = impl_->pricer.assumptions();
  double known = 0;
  for (const double us : passes.source_us) known += us;
  for (std::size_t i = 0; i < 4; ++i) {
    result.source_shares[i] = known > 0 ? passes.source_us[i] / known : 0;
  }
  // Errors of many kernels cancel in part. What rests on assumptions may be off as a whole.
  const double guessed =
      assume.structure_assumed * result.source_shares[static_cast<std::size_t>(EstimateSource::assumed)] +
      (impl_->pricer.kernels().clock_is_assumed() ? assume.structure_assumed : 0);
  const double down = std::min(0.9, std::hypot(kCorrelatedShare * low, assume.structure_low, guessed));
  const double up = std::hypot(kCorrelatedShare * high, assume.structure_high, kSlowSideOfAssumed * guessed);
  EstimateSource source = EstimateSource::fitted;
  if (result.source_shares[2] > 0.5) source = EstimateSource::analytic;
  if (result.source_shares[3] > 0.5) source = EstimateSource::assumed;
  result.step = {Microseconds{time}, Microseconds{time * (1 - down)}, Microseconds{time * (1 + up)}, source};
  result.n_gpus = layout.world_size();
  result.tokens_per_step =
      static_cast<double>(layout.batch.global_batch_sequences * layout.batch.seq_len_tokens);
  const double ranks_per_stage =
      static_cast<double>(result.n_gpus) / static_cast<double>(layout.degrees.pipeline);
  result.model_flops = model_flops * ranks_per_stage;
  result.hardware_flops = all_flops * ranks_per_stage;
  result.peak = impl_->pricer.platform().device.peak(layout.layer.precision.compute);
  return result;
}

}  // namespace stepcast
