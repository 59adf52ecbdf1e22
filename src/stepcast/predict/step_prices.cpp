// Prices are cached: operations by TrainingKernels, curves of collectives by group, layers by their address
// and the placement of their groups.
#include "stepcast/predict/step_prices.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <variant>

#include "stepcast/cost/host_overheads.h"

namespace stepcast {
namespace {

// SMs used to reduce transfers of a tensor-parallel group during a GEMM: num_sm of the userbuffer
// configurations of Transformer Engine. NCCL uses about the same number.
constexpr double kReductionMultiprocessors = 16;

}  // namespace

const GroupPlacement& group_of(GroupKind kind, const Placement& placement) {
  switch (kind) {
    case GroupKind::tensor: return placement.tensor;
    case GroupKind::context: return placement.context;
    case GroupKind::expert: return placement.expert;
    case GroupKind::data: return placement.data_context;
    case GroupKind::expert_data: return placement.expert_data;
    case GroupKind::pipeline: return placement.pipeline;
    case GroupKind::embedding: return placement.embedding;
    case GroupKind::shard: return placement.shard;
    case GroupKind::replicate: return placement.replicate;
  }
  return placement.data_context;
}

StepPricer::StepPricer(const Platform& platform, const StepAssumptions& assumptions)
    : platform_(&platform), kernels_(platform), collectives_(platform) {
  assume(assumptions);
  const ModelRecord* record = platform.find_model(ExpertExchange::kRecordKind);
  if (record == nullptr) return;
  // An unreadable record is treated as missing.
  if (auto rates = ExpertExchange::read(record->parameters)) exchange_rates_ = std::move(*rates);
}

void StepPricer::assume(const StepAssumptions& assumptions) {
  const StepAssumptions before = assumptions_;
  assumptions_ = assumptions;
  kernels_.set_options({.gemm_factor = assumptions.gemm_factor,
                        .attention_factor = assumptions.attention_factor,
                        .memory_bound_factor = assumptions.memory_bound_factor,
                        .fp8_gemm_factor = assumptions.fp8_gemm_factor,
                        .unmeasured_kernels_factor = assumptions.unmeasured_kernels_factor,
                        .expert_factor = assumptions.expert_factor,
                        .weight_gradient_factor = assumptions.weight_gradient_factor,
                        .fp8_gemm_time_ratio = assumptions.fp8_gemm_time_ratio});
  // Assumptions are factors on times; the collective model takes speeds.
  collectives_.set_speeds(1 / assumptions.intra_node_factor, 1 / assumptions.inter_node_factor);
  // Factors calibrated on measured steps of the platform multiply those of the caller.
  const StepFactors& factors = kernels_.platform_factors();
  assumptions_.communication_factor *= factors.communication;
  assumptions_.expert_factor *= factors.experts;
  assumptions_.intra_node_factor *= factors.intra_node;
  assumptions_.inter_node_factor *= factors.inter_node;
  constexpr std::size_t kMostRemembered = 4096;
  if (layers_.size() > kMostRemembered) layers_.clear();
  if (assumptions_ == before) return;
  // Layers priced under other assumptions are kept, since searches alternate between a few assumptions.
  others_.of(before) = std::move(layers_);
  layers_ = std::move(others_.of(assumptions_));
}

double StepPricer::operator_us() {
  if (!operator_us_) {
    // An unreadable host model is treated as missing.
    const Result<HostOverheads> host = HostOverheads::of(*platform_);
    operator_us_ = host.ok() ? host->us_per_launch() : 0;
  }
  return *operator_us_;
}

double StepPricer::overlap_slowdown(CollectiveOp op) const {
  const double sms = platform_->device.sm_count.value_or(0);
  // A reduce-scatter also sums data. It slows computation by its SMs / the remaining SMs, if that is more than
  // the assumed share.
  if (op != CollectiveOp::reduce_scatter || sms <= 2 * kReductionMultiprocessors) {
    return assumptions_.overlap_slowdown;
  }
  return std::max(assumptions_.overlap_slowdown,
                  kReductionMultiprocessors / (sms - kReductionMultiprocessors));
}

Result<const TimeCurve*> StepPricer::curve(CollectiveOp op, const GroupPlacement& place) {
  const GroupKey key{op,
                     static_cast<std::uint32_t>(place.n_ranks),
                     static_cast<std::uint32_t>(place.n_nodes),
                     static_cast<std::uint32_t>(place.min_ranks_per_node),
                     static_cast<std::uint32_t>(place.groups_per_node),
                     place.rail_aligned,
                     place.network_slowdown,
                     collectives_.intra_speed(),
                     collectives_.network_speed()};
  if (const auto known = curves_.find(key); known != curves_.end()) return &known->second;
  CollectiveGroup group;
  group.op = op;
  group.dtype = DType::bf16;  // data that is reduced in training has 16 or 32 bits
  group.n_ranks = key.n_ranks;
  group.n_nodes = key.n_nodes;
  group.min_ranks_per_node = place.min_ranks_per_node == place.ranks_per_node ? 0 : key.min_ranks;
  group.groups_per_node = std::max(1U, key.groups_per_node);
  group.rail_aligned = key.rail_aligned;
  group.network_slowdown = key.network_slowdown;
  STEPCAST_ASSIGN(const ResolvedCollective resolved, collectives_.resolve(group));
  return &curves_.emplace(key, resolved.curve).first->second;
}

std::size_t StepPricer::GroupKeyHash::operator()(const GroupKey& key) const {
  const std::uint64_t ranks = std::uint64_t{key.n_ranks} << 32U | key.n_nodes;
  const std::uint64_t place =
      std::uint64_t{key.min_ranks} << 32U | key.groups_per_node << 8U | static_cast<std::uint64_t>(key.op);
  const std::uint64_t state = (ranks * 0x9e3779b97f4a7c15ULL) ^ (place * 0xc2b2ae3d27d4eb4fULL);
  return static_cast<std::size_t>(state ^ state >> 32U);
}

void StepPricer::price_as(const std::optional<TokenExchange>& exchange, bool on_device,
                          bool fp32_convolutions, double host_share) {
  exchange_ = exchange;
  is_on_device_ = on_device;
  fp32_convolutions_ = fp32_convolutions;
  host_share_ = host_share;
  if (on_device && !on_device_) on_device_.emplace(kernels_.model(), platform_->device);
}

Estimate StepPricer::on_device(const Operation& operation, const PricedOperation& priced) {
  const bool amd = platform_->device.vendor == "AMD";
  Operation run = operation;
  // cuDNN runs fp32 convolutions of PyTorch on TF32 units if the GPU has them, unless the layout forbids it.
  const bool convolves = std::holds_alternative<ConvolutionShape>(run.shape);
  const auto has = [&](DType dtype) { return kernels_.model().analytic().figures().has_matrix_units(dtype); };
  const bool on_units = convolves && run.dtype == DType::fp32 && !amd && has(DType::tf32);
  if (on_units && !fp32_convolutions_) run.dtype = DType::tf32;
  SeenKernels kernels = usual_kernels(run, amd, has(run.dtype));
  if (on_units && fp32_convolutions_) kernels.times = 1;  // no kernel uses TF32 units
  return on_device_->of(run, priced, kernels);
}

// Time of dispatch (scatter) or combine (gather) by a library; nullopt if collectives do it or rates are
// missing.
std::optional<Estimate> StepPricer::price_exchange(CollectiveOp op, Bytes message,
                                                   const GroupPlacement& place) const {
  if (!exchange_ || (op != CollectiveOp::scatter && op != CollectiveOp::gather)) return std::nullopt;
  const auto rates = exchange_rates_.rates(platform_->device, op == CollectiveOp::gather);
  const Node& node = collectives_.node();
  if (!rates || (place.n_nodes > 1 && !node.network)) return std::nullopt;
  TokenExchange exchange = *exchange_;
  exchange.tokens = message.value() / (exchange.hidden_size * exchange.element_bytes);
  if (op == CollectiveOp::scatter)
    exchange.element_bytes = exchange.dispatch_bytes.value_or(exchange.element_bytes);
  ExchangePlace where{place.n_ranks, place.n_nodes, node.intra.bandwidth_per_gpu, {}};
  if (node.network) {
    where.network = node.network->bandwidth_per_node() *
                    (1.0 / (place.network_slowdown * static_cast<double>(node.gpus_per_node)));
  }
  const double us = exchange_us(*rates, exchange, where);
  const double wider = band_of_other_nodes(place.n_nodes);
  return Estimate{Microseconds{us}, Microseconds{us * std::exp(rates->log_p10 - wider)},
                  Microseconds{us * std::exp(rates->log_p90 + wider)}, EstimateSource::fitted};
}

Result<Estimate> StepPricer::price(CollectiveOp op, Bytes message, const GroupPlacement& place) {
  if (place.n_ranks <= 1 || message.value() <= 0) return Estimate{};
  const StepFactors& factors = kernels_.platform_factors();
  const double where = place.n_nodes > 1 ? factors.inter_node : factors.intra_node;
  // Dispatch and combine of a library scale with the factor of experts as well.
  if (const auto exchanged = price_exchange(op, message, place)) {
    return exchanged->scaled(assumptions_.communication_factor * where * assumptions_.expert_factor);
  }
  STEPCAST_ASSIGN(const TimeCurve* found, curve(op, place));
  const double experts = op == CollectiveOp::all_to_all ? assumptions_.expert_factor : 1;
  Estimate estimate = found->at(message).scaled(assumptions_.communication_factor * where * experts);
  if (place.between_zones_us > 0) {  // an all-reduce goes around the ring twice
    const Microseconds late{place.between_zones_us * (op == CollectiveOp::all_reduce ? 2 : 1)};
    for (Microseconds* time : {&estimate.time, &estimate.p10, &estimate.p90}) *time += late;
  }
  return estimate;
}

Result<Estimate> StepPricer::price(const Transfer& transfer, const Placement& placement) {
  return price(transfer.op, transfer.message, group_of(transfer.group, placement));
}

Result<PricedList> StepPricer::price(const WorkList& list, const Placement& placement) {
  STEPCAST_TRY(lay_out(list, *this, placement, items_));
  return sum_of(items_);
}

std::size_t StepPricer::LayerPlaceHash::operator()(const LayerPlace& place) const {
  std::uint64_t state = reinterpret_cast<std::uintptr_t>(place.layer.get());
  for (const GroupPlacement* group : {&place.tensor, &place.context, &place.expert}) {
    for (const std::int64_t number : {group->n_ranks, group->n_nodes, group->groups_per_node}) {
      state = (state ^ static_cast<std::uint64_t>(number)) * 0x9e3779b97f4a7c15ULL;
    }
  }
  return static_cast<std::size_t>(state ^ (state >> 32U));
}

Result<PricedLayer> StepPricer::price(const std::shared_ptr<const LayerWork>& layer,
                                      const Placement& placement, double launch_us) {
  LayerPlace place{layer, placement.tensor, placement.context, placement.expert, launch_us};
  if (const auto found = layers_.find(place); found != layers_.end()) return found->second;
  PricedLayer priced;
  const auto fill = [&](PricedList& list, const WorkList& work) -> Status {
    STEPCAST_ASSIGN(list, price(work, placement));
    wait_for_launches(list, time_with_launches(items_, list, launch_us));
    return Ok{};
  };
  STEPCAST_TRY(fill(priced.forward, layer->forward));
  STEPCAST_TRY(fill(priced.backward, layer->backward));
  STEPCAST_TRY(fill(priced.held_back, layer->held_back));
  return layers_.emplace(std::move(place), priced).first->second;
}

}  // namespace stepcast
