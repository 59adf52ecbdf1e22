#include "stepcast/predict/step_prices.h"

#include <algorithm>

namespace stepcast {
namespace {

std::size_t index(KernelClass kernel_class) { return static_cast<std::size_t>(kernel_class); }
std::size_t index(GroupKind group) { return static_cast<std::size_t>(group); }
std::size_t index(EstimateSource source) { return static_cast<std::size_t>(source); }

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
  }
  return placement.data_context;
}

PricedList& PricedList::operator+=(const PricedList& other) {
  time_us += other.time_us;
  low_us += other.low_us;
  high_us += other.high_us;
  host_us += other.host_us;
  kernels += other.kernels;
  flops += other.flops;
  for (std::size_t i = 0; i < class_us.size(); ++i) class_us[i] += other.class_us[i];
  for (std::size_t i = 0; i < exposed_us.size(); ++i) exposed_us[i] += other.exposed_us[i];
  for (std::size_t i = 0; i < transfer_us.size(); ++i) transfer_us[i] += other.transfer_us[i];
  for (std::size_t i = 0; i < source_us.size(); ++i) source_us[i] += other.source_us[i];
  return *this;
}

PricedList PricedList::times(double count) const {
  PricedList result = *this;
  result.time_us *= count;
  result.low_us *= count;
  result.high_us *= count;
  result.host_us *= count;
  result.kernels *= count;
  result.flops *= count;
  for (double& x : result.class_us) x *= count;
  for (double& x : result.exposed_us) x *= count;
  for (double& x : result.transfer_us) x *= count;
  for (double& x : result.source_us) x *= count;
  return result;
}

StepPricer::StepPricer(const Platform& platform, const StepAssumptions& assumptions)
    : platform_(&platform), kernels_(platform), collectives_(platform) {
  set_assumptions(assumptions);
}

void StepPricer::set_assumptions(const StepAssumptions& assumptions) {
  assumptions_ = assumptions;
  kernels_.set_options({.gemm_factor = assumptions.gemm_factor,
                        .attention_factor = assumptions.attention_factor,
                        .memory_bound_factor = assumptions.memory_bound_factor,
                        .weight_gradient_factor = assumptions.weight_gradient_factor,
                        .fp8_gemm_time_ratio = assumptions.fp8_gemm_time_ratio});
  // Factors that were calibrated on steps of the platform come on top of those of the caller.
  const StepFactors& factors = kernels_.platform_factors();
  assumptions_.communication_factor *= factors.communication;
  assumptions_.intra_node_factor *= factors.intra_node;
  assumptions_.inter_node_factor *= factors.inter_node;
}

Result<const TimeCurve*> StepPricer::curve(CollectiveOp op, const GroupPlacement& place) {
  const GroupKey key{op,
                     static_cast<std::uint32_t>(place.n_ranks),
                     static_cast<std::uint32_t>(place.n_nodes),
                     static_cast<std::uint32_t>(place.min_ranks_per_node),
                     static_cast<std::uint32_t>(place.groups_per_node),
                     place.rail_aligned};
  for (const auto& entry : curves_) {
    if (entry->key == key) return &entry->curve;
  }
  CollectiveGroup group;
  group.op = op;
  group.n_ranks = key.n_ranks;
  group.n_nodes = key.n_nodes;
  group.min_ranks_per_node = place.min_ranks_per_node == place.ranks_per_node ? 0 : key.min_ranks;
  group.groups_per_node = std::max(1U, key.groups_per_node);
  group.rail_aligned = key.rail_aligned;
  STEPCAST_ASSIGN(ResolvedCollective resolved, collectives_.resolve(group));
  curves_.push_back(std::make_unique<GroupCurve>(GroupCurve{key, resolved.curve, std::move(resolved.how)}));
  return &curves_.back()->curve;
}

Result<Estimate> StepPricer::price(const Transfer& transfer, const Placement& placement) {
  const GroupPlacement& place = group_of(transfer.group, placement);
  if (place.n_ranks <= 1 || transfer.message.value() <= 0) return Estimate{};
  STEPCAST_ASSIGN(const TimeCurve* found, curve(transfer.op, place));
  const double where = place.n_nodes > 1 ? assumptions_.inter_node_factor : assumptions_.intra_node_factor;
  return found->at(transfer.message).scaled(assumptions_.communication_factor * where);
}

Result<PricedList> StepPricer::price(const WorkList& list, const Placement& placement) {
  PricedList sum;
  Estimate beside;  // transfer that runs beside the next item
  GroupKind beside_group = GroupKind::tensor;
  bool has_beside = false;
  for (const WorkItem& item : list) {
    const auto count = static_cast<double>(item.count);
    if (const Transfer* transfer = item.transfer()) {
      STEPCAST_ASSIGN(Estimate t, price(*transfer, placement));
      t = t.scaled(count);
      sum.transfer_us[index(transfer->group)] += t.time.value();
      if (item.beside_next) {
        // Two transfers in a row that could hide: they share one link, so they add up.
        beside.time += t.time;
        beside.p10 += t.p10;
        beside.p90 += t.p90;
        beside_group = transfer->group;
        has_beside = true;
      } else {
        sum.time_us += t.time.value();
        sum.low_us += t.p10.value();
        sum.high_us += t.p90.value();
        sum.exposed_us[index(transfer->group)] += t.time.value();
        if (t.time.value() > 0) sum.kernels += count;
      }
      continue;
    }
    const PricedOperation& priced = kernels_.price(*item.operation());
    Estimate t = priced.time.scaled(count);
    sum.kernels += count * priced.kernels;
    sum.flops += count * priced.matrix_flops;
    if (has_beside) {
      // Beside a transfer of its own length or more, all of the operation slows down.
      const double covered = t.time.value() > 0 ? std::min(1.0, beside.time.value() / t.time.value()) : 0.0;
      t = t.scaled(1 + covered * assumptions_.overlap_slowdown);
      const double exposed = std::max(0.0, beside.time.value() - t.time.value());
      sum.time_us += exposed;
      sum.low_us += std::max(0.0, beside.p10.value() - t.time.value());
      sum.high_us += std::max(0.0, beside.p90.value() - t.time.value());
      sum.exposed_us[index(beside_group)] += exposed;
      beside = Estimate{};
      has_beside = false;
    }
    sum.time_us += t.time.value();
    sum.low_us += t.p10.value();
    sum.high_us += t.p90.value();
    sum.class_us[index(priced.kernel_class)] += t.time.value();
    sum.source_us[index(t.source)] += t.time.value();
  }
  if (has_beside) {
    sum.time_us += beside.time.value();
    sum.low_us += beside.p10.value();
    sum.high_us += beside.p90.value();
    sum.exposed_us[index(beside_group)] += beside.time.value();
  }
  return sum;
}

}  // namespace stepcast
