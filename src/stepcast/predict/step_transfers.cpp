#include "stepcast/predict/step_transfers.h"

#include <algorithm>

#include "stepcast/operation/optimizer_rule.h"
#include "stepcast/workload/framework_behavior.h"
#include "stepcast/workload/optimizer_work.h"

namespace stepcast {
namespace {

// Whether any weights of a rank are also on another rank, so that gradients must be reduced.
bool weights_are_replicated(const Layout& layout, const PricedStep& step) {
  if (step.placement.data_context.n_ranks > 1) return true;
  const auto& layers = step.work.layer_kinds;
  return layout.experts_have_own_groups() && step.placement.expert_data.n_ranks > 1 &&
         std::any_of(layers.begin(), layers.end(),
                     [](const auto& layer) { return layer->expert_parameters > 0; });
}

// Fills the transfers of one step. The functions must be called in the order of their declarations.
class TransferPricing {
 public:
  TransferPricing(const Transformer& model, const Layout& layout, StepPricer& prices, PricedStep& step)
      : model_(model),
        layout_(layout),
        prices_(prices),
        step_(step),
        data_parallel_(weights_are_replicated(layout, step)),
        sharded_(layout.sharding.kind != Sharding::none) {}

  // Decides when weights are gathered and gradients reduced.
  void choose_overlap();
  // Transfers of the weights and gradients of every layer, the embedding and the head.
  Status per_unit();
  // Updates of all stages, and their transfers in one piece.
  Status per_stage();
  // Activations between stages, and gradients of tied embeddings.
  Status between_stages();

 private:
  // Prices `bytes` in messages of at least `bucket_bytes`. A smaller piece is priced as its share of a full
  // bucket, because it is sent together with its neighbours.
  Result<BulkTransfer> bulk(CollectiveOp op, GroupKind group, double bytes, double bucket_bytes);
  // Adds the transfer unless it takes no time.
  Status add(BulkTransfers& transfers, CollectiveOp op, GroupKind group, double bytes, double bucket_bytes);
  // Numbers of parameters of one rank: all, and those with gradients.
  struct Parameters {
    double dense = 0, expert = 0, trained_dense = 0, trained_expert = 0;
  };
  // Transfers of the weights and gradients of these parameters. `whole`: all parameters of the rank in one
  // piece, without buckets.
  Result<DataTransfers> data_transfers(const Parameters& all, bool whole);

  const Transformer& model_;
  const Layout& layout_;
  StepPricer& prices_;
  PricedStep& step_;
  bool data_parallel_, sharded_;
};

Result<BulkTransfer> TransferPricing::bulk(CollectiveOp op, GroupKind group, double bytes,
                                           double bucket_bytes) {
  const double message = std::max(bytes, bucket_bytes);
  BulkTransfer result{{op, group, Bytes{message}}, message > 0 ? bytes / message : 0, 0};
  STEPCAST_ASSIGN(const Estimate t, prices_.price(result.transfer, step_.placement));
  result.time_us = t.time.value() * result.times;
  return result;
}

Status TransferPricing::add(BulkTransfers& transfers, CollectiveOp op, GroupKind group, double bytes,
                            double bucket_bytes) {
  STEPCAST_ASSIGN(const BulkTransfer transfer, bulk(op, group, bytes, bucket_bytes));
  if (transfer.time_us > 0) transfers.add(transfer);
  return Ok{};
}

Result<DataTransfers> TransferPricing::data_transfers(const Parameters& all, bool whole) {
  const GradientTraffic traffic = gradient_traffic(layout_);
  const ShardingChoices& sharding = layout_.sharding;
  double bucket = 0;
  if (!whole) {
    bucket = static_cast<double>(sharding.bucket_parameters.value_or(
        usual_bucket_parameters(layout_.software.framework, layout_.degrees.data)));
    // FSDP transfers all weights of a layer together, independent of their size.
    if (sharding.kind == Sharding::zero3 || sharding.kind == Sharding::zero2) bucket = 0;
  }
  DataTransfers result;
  const auto add_parameters = [&](double parameters, double trained, GroupKind holders) -> Status {
    if (parameters <= 0) return Ok{};
    // Frozen weights are transferred only if they are sharded.
    if (sharding.kind != Sharding::zero3) parameters = trained;
    // Hybrid sharding: weights are gathered and gradients scattered within a shard group; then the shards of
    // the gradients are summed over the groups.
    const bool hybrid = sharded_ && step_.placement.replicate.n_ranks > 1 && holders == GroupKind::data;
    const GroupKind group = hybrid ? GroupKind::shard : holders;
    const double reduced = traffic.reduce_bytes_per_parameter, gathered = traffic.gather_bytes_per_parameter;
    // Optimizers that keep whole matrices on one rank need whole gradients.
    const bool scattered = sharded_ && !rule_of(layout_.optimizer.kind).matrix->owned_whole;
    const CollectiveOp reduce = scattered ? CollectiveOp::reduce_scatter : CollectiveOp::all_reduce;
    STEPCAST_TRY(add(result.reduce, reduce, group, trained * reduced, bucket * reduced));
    if (!sharded_) return Ok{};
    if (hybrid) {
      const double part = reduced / static_cast<double>(layout_.shard_group());
      STEPCAST_TRY(
          add(result.reduce, CollectiveOp::all_reduce, GroupKind::replicate, trained * part, bucket * part));
    }
    // Sharded weights of a reference model are gathered in addition to those of the trained model, which are
    // gathered once, or twice with the backward pass.
    const bool gathers_reference = layout_.layer.reference_model && sharding.kind == Sharding::zero3;
    const double gathers = gathers_reference ? (step_.schedule.gather_backward ? 1.5 : 2) : 1;
    return add(result.gather, CollectiveOp::all_gather, group, parameters * gathered * gathers,
               bucket * gathered);
  };
  STEPCAST_TRY(add_parameters(all.dense, all.trained_dense, GroupKind::data));
  STEPCAST_TRY(add_parameters(all.expert, all.trained_expert,
                              layout_.experts_have_own_groups() ? GroupKind::expert_data : GroupKind::data));
  return result;
}

// Decides when weights and gradients are transferred and whether they overlap computation.
void TransferPricing::choose_overlap() {
  StepSchedule& schedule = step_.schedule;
  const ShardingChoices& sharding = layout_.sharding;
  schedule.gather = WeightGather::none;
  schedule.reduce = GradientReduce::none;
  schedule.gather_backward = false;
  schedule.backward_prefetch = sharding.backward_prefetch;
  if (!data_parallel_) return;
  schedule.reduce = sharding.overlap_gradient_reduce ? GradientReduce::last_backward : GradientReduce::at_end;
  switch (sharding.kind) {
    case Sharding::none: break;
    case Sharding::zero1:
      schedule.gather =
          sharding.overlap_parameter_gather ? WeightGather::first_forward : WeightGather::after_step;
      break;
    case Sharding::zero2:
    case Sharding::zero3: {
      // With a pipeline, gathered weights are kept from the first micro-batch to the last.
      const bool every =
          sharding.kind == Sharding::zero3 && step_.work.stages == 1 && sharding.reshard_after_forward;
      schedule.gather = every ? WeightGather::every_forward : WeightGather::first_forward;
      schedule.gather_backward = every;
      schedule.reduce = step_.work.stages == 1 && sharding.reduce_every_micro_batch
                            ? GradientReduce::every_backward
                            : GradientReduce::last_backward;
      break;
    }
  }
}

Status TransferPricing::per_unit() {
  if (!data_parallel_) return Ok{};
  const StepWork& work = step_.work;
  const auto parameters_of = [](const LayerWork& layer) {
    return Parameters{layer.dense_parameters, layer.expert_parameters, layer.trained_dense_parameters,
                      layer.trained_expert_parameters};
  };
  for (std::size_t kind = 0; kind < work.layer_kinds.size(); ++kind) {
    const LayerWork& layer = *work.layer_kinds[kind];
    STEPCAST_ASSIGN(step_.layers[kind].transfers, data_transfers(parameters_of(layer), false));
  }
  STEPCAST_ASSIGN(step_.embedding.transfers, data_transfers(parameters_of(*work.embedding), false));
  STEPCAST_ASSIGN(step_.head.transfers, data_transfers(parameters_of(*work.head), false));
  for (std::size_t c = 0; c < work.chunks.size(); ++c) {
    const ChunkWork& chunk = work.chunks[c];
    auto unit = step_.schedule.chunks[c].units.begin();
    const auto set = [&](const DataTransfers& transfers) {
      unit->gather_us = transfers.gather.time_us();
      unit->reduce_us = transfers.reduce.time_us();
      ++unit;
    };
    if (chunk.has_embedding) set(step_.embedding.transfers);
    for (const ChunkWork::Run& run : chunk.runs) {
      for (std::uint32_t i = 0; i < run.count; ++i) set(step_.layers[run.kind].transfers);
    }
    if (chunk.has_head) set(step_.head.transfers);
  }
  return Ok{};
}

Status TransferPricing::per_stage() {
  StepSchedule& schedule = step_.schedule;
  const std::uint32_t stages = step_.work.stages;
  schedule.reduce_at_end_us.assign(stages, 0);
  schedule.gather_after_step_us.assign(stages, 0);
  schedule.optimizer_us.assign(stages, 0);
  step_.updates.clear();
  step_.update_of_stage.assign(stages, 0);
  for (std::uint32_t s = 0; s < stages; ++s) {
    Parameters all;
    const auto chunk_of = [&](std::uint32_t local) -> const ChunkWork& {
      return step_.work.chunks[chunk_of_stage(layout_.pipeline.schedule, stages, s, local)];
    };
    for (std::uint32_t i = 0; i < step_.work.virtual_stages; ++i) {
      const ChunkWork& chunk = chunk_of(i);
      all.dense += chunk.dense_parameters;
      all.expert += chunk.expert_parameters;
      all.trained_dense += chunk.trained_dense_parameters;
      all.trained_expert += chunk.trained_expert_parameters;
    }
    const double dense = all.trained_dense, expert = all.trained_expert;
    // Consecutive stages with equal parameters share one update.
    const bool as_before = !step_.updates.empty() && step_.updates.back().dense_parameters == dense &&
                           step_.updates.back().expert_parameters == expert;
    if (!as_before) {
      PricedStep::Update& update = step_.updates.emplace_back();
      update.dense_parameters = dense;
      update.expert_parameters = expert;
      const bool at_once =
          schedule.reduce == GradientReduce::at_end || schedule.gather == WeightGather::after_step;
      if (at_once) {
        STEPCAST_ASSIGN(update.whole, data_transfers(all, true));
      }
      TrainedParameters trained{dense, expert, {}};
      for (std::uint32_t i = 0; i < step_.work.virtual_stages; ++i)
        add_weight_matrices(model_, layout_, step_.work, chunk_of(i), trained);
      update.work = optimizer_work(layout_, trained);
      STEPCAST_ASSIGN(update.price, prices_.price(update.work, step_.placement));
    }
    step_.update_of_stage[s] = static_cast<std::uint32_t>(step_.updates.size() - 1);
    const PricedStep::Update& update = step_.updates.back();
    schedule.reduce_at_end_us[s] = update.whole.reduce.time_us();
    schedule.gather_after_step_us[s] = update.whole.gather.time_us();
    schedule.optimizer_us[s] = update.price.time_us;
  }
  return Ok{};
}

Status TransferPricing::between_stages() {
  StepSchedule& schedule = step_.schedule;
  const Degrees& degrees = layout_.degrees;
  schedule.boundary_us = schedule.boundary_wrap_us = schedule.embedding_reduce_us = 0;
  step_.boundary = step_.put_together = step_.tied_embedding = {};  // values of an earlier layout
  schedule.boundary_blocks = !layout_.pipeline.overlap;
  if (step_.work.stages == 1) return Ok{};
  const double part = step_.work.boundary.value();
  STEPCAST_ASSIGN(step_.boundary, bulk(CollectiveOp::send_receive, GroupKind::pipeline, part, 0));
  // Scatter-gather: each tensor-parallel rank sends its part, and the receiving group gathers the parts.
  if (layout_.pipeline.p2p_scatter_gather && !layout_.layer.sequence_parallel && degrees.tensor > 1) {
    STEPCAST_ASSIGN(step_.put_together, bulk(CollectiveOp::all_gather, GroupKind::tensor,
                                             part * static_cast<double>(degrees.tensor), 0));
  }
  schedule.boundary_us = schedule.boundary_wrap_us = step_.boundary.time_us + step_.put_together.time_us;
  if (!embeds_on_last_stage(model_) || layout_.layer.frozen_base || is_v_shaped(layout_.pipeline.schedule)) {
    return Ok{};
  }
  // The shard of the embedding on one rank, in the type in which gradients are reduced.
  const double bytes = static_cast<double>(padded_vocab_size(model_, layout_)) /
                       static_cast<double>(degrees.tensor) * static_cast<double>(model_.hidden_size) *
                       gradient_traffic(layout_).reduce_bytes_per_parameter;
  STEPCAST_ASSIGN(step_.tied_embedding, bulk(CollectiveOp::all_reduce, GroupKind::embedding, bytes, 0));
  schedule.embedding_reduce_us = step_.tied_embedding.time_us;
  return Ok{};
}

}  // namespace

Status price_transfers(const Transformer& model, const Layout& layout, StepPricer& prices, PricedStep& step) {
  TransferPricing pricing{model, layout, prices, step};
  pricing.choose_overlap();
  STEPCAST_TRY(pricing.per_unit());
  STEPCAST_TRY(pricing.per_stage());
  return pricing.between_stages();
}

}  // namespace stepcast
