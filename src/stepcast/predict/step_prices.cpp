#include "stepcast/predict/step_prices.h"

#include <algorithm>
#include <cmath>

namespace stepcast {
namespace {

// Where the band of an fp8 GEMM that nobody measured ends, relative to the assumed ratio. Assumed.
constexpr double kFp8FastSide = 0.85;
constexpr double kFp8SlowSide = 1.25;

bool is_matrix_work(KernelClass kernel_class) {
  return kernel_class == KernelClass::gemm || kernel_class == KernelClass::attention;
}

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
  const ModelRecord* record = platform.find_model("sustained_clock");
  if (record == nullptr || record->kind != "sustained_clock") return;
  const auto number = [&](const char* key) -> double {
    const JsonValue* value = record->parameters.find(key);
    return value != nullptr && value->is_number() ? value->number() : 0.0;
  };
  if (number("time_factor") < 1) return;
  clock_ = {number("time_factor"), number("full_below_us"), number("none_above_us"),
            std::max(1.0, number("power_factor")), record->provenance.source == FigureSource::assumed};
}

// Factors that were calibrated on steps of the platform come on top of those of the caller.
void StepPricer::set_assumptions(const StepAssumptions& assumptions) {
  assumptions_ = assumptions;
  operations_.clear();
  const ModelRecord* record = platform_->find_model("step_factors");
  if (record == nullptr || record->kind != "step_factors") return;
  for (const StepAssumptionField& field : step_assumption_fields()) {
    const JsonValue* value = record->parameters.find(field.name);
    if (value == nullptr || !value->is_number() || !field.name.ends_with("_factor")) continue;
    if (value->number() >= field.minimum && value->number() <= field.maximum) {
      assumptions_.*(field.member) *= value->number();
    }
  }
}

double StepPricer::sustained_factor(Microseconds time) const {
  // Records of long kernels hold the fall of the clock already: the factor is for short ones.
  if (clock_.time_factor <= 1 || time.value() >= clock_.none_above_us) return clock_.power_factor;
  if (time.value() <= clock_.full_below_us) return clock_.time_factor * clock_.power_factor;
  const double faded =
      std::log(time.value() / clock_.full_below_us) / std::log(clock_.none_above_us / clock_.full_below_us);
  return (clock_.time_factor + (1 - clock_.time_factor) * faded) * clock_.power_factor;
}

Estimate StepPricer::estimate(const Operation& operation) const {
  Estimate result = kernels_.estimate(operation);
  const auto* product = std::get_if<GemmShape>(&operation.shape);
  const std::optional<FlopsPerSecond> fp8_peak = platform_->device.peak(DType::fp8);
  if (product != nullptr && operation.dtype == DType::fp8 && fp8_peak &&
      result.source != EstimateSource::fitted && result.source != EstimateSource::measured) {
    // No fp8 product is measured: as in 16 bit, faster by an assumed ratio.
    Operation sixteen_bit = operation;
    sixteen_bit.dtype = DType::bf16;
    const Estimate base = kernels_.estimate(sixteen_bit);
    result = base.scaled(assumptions_.fp8_gemm_time_ratio);
    result.p10 = std::min(result.p10, base.time * (kFp8FastSide * assumptions_.fp8_gemm_time_ratio));
    result.p90 = std::max(result.p90, base.time * (kFp8SlowSide * assumptions_.fp8_gemm_time_ratio));
    const Microseconds bound = kernels_.analytic().lower_bound(operation);
    result.time = std::max(result.time, bound);
    result.p90 = std::max(result.p90, result.time);
    result.source = EstimateSource::assumed;
  }
  const KernelClass kernel_class = kernel_class_of(operation);
  // Weight gradients, written into fp32 and from transposed operands, reach less of the peak. The backward
  // products of the operator measurements are left out: they reach 99 % of the peak, probably because their
  // operands are gradients of a mean over 1e7 and more elements, which fp16 rounds to zero.
  if (product != nullptr && product->batch == 1 && product->layout == GemmLayout::nt &&
      operation.direction == Direction::forward) {
    result = result.scaled(assumptions_.weight_gradient_factor);
  }
  if (is_matrix_work(kernel_class)) return result.scaled(sustained_factor(result.time));
  return result;
}

const StepPricer::PricedOperation& StepPricer::look_up(const Operation& operation) {
  const auto [place, fresh] = operations_.try_emplace(operation);
  if (fresh) {
    const KernelClass kernel_class = kernel_class_of(operation);
    const Work work = work_of(operation);
    const double factor = kernel_class == KernelClass::gemm        ? assumptions_.gemm_factor
                          : kernel_class == KernelClass::attention ? assumptions_.attention_factor
                                                                   : assumptions_.memory_bound_factor;
    place->second = {estimate(operation).scaled(factor), kernel_class, static_cast<double>(work.kernels),
                     is_matrix_work(kernel_class) ? work.flops.value() : 0.0};
  }
  return place->second;
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
    const PricedOperation& priced = look_up(*item.operation());
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
