#include "stepcast/cost/training_kernels.h"

#include <algorithm>
#include <cmath>
#include <variant>

#include <fmt/format.h>

#include "stepcast/platform/changed_figures.h"

// Prices of kernels in a training step: KernelModel plus corrections for fp8 GEMMs, experts, optimizer
// updates, weight gradients, the sustained clock and user factors.

namespace stepcast {
namespace {

// Band of an unmeasured fp8 GEMM, as shares of its time: assumed.
constexpr double kFp8FastSide = 0.85, kFp8SlowSide = 1.25;

// Widening of the band of gradients of grouped GEMMs, which are not measured, each side, in ln. Assumed.
constexpr double kExpertGradient = 0.10;

// Bytes per element that a cast to 8 bits reads and writes, and the share of the memory bandwidth that it
// reaches: assumed.
constexpr double kCastBytes = 3, kCastShare = 0.75;
constexpr double kSlowestCastSide = 1.5;  // limit of the upper band, where the rows predict a longer time

// Shares of the memory bandwidth that fused optimizer updates reach: assumed. Pipeline stages on an A100
// reach 0.61 (operators_fwd_bwd_a100_80gb.csv), updates without waiting 0.9; the last value is only for the
// band.
constexpr double kFastestUpdate = 0.9, kSlowestUpdate = 0.6, kSlowestUpdateBand = 0.5;

// Common error, in ln, of matrix work on a device with kernels of a sibling: twice the 5 % of devices with a
// sustained clock from other devices. Assumed.
constexpr double kClockOfSibling = 0.1;

// Classes limited by arithmetic on matrix units.
bool is_matrix_work(KernelClass kernel_class) {
  return kernel_class == KernelClass::gemm || kernel_class == KernelClass::attention;
}

// Whether an estimate comes from a measurement, directly or through a fit.
bool is_measured(EstimateSource source) {
  return source == EstimateSource::measured || source == EstimateSource::fitted;
}

// The record of a platform with the name and kind `kind`, parsed into `out`. Null, with `out` unchanged, if
// there is none or if it is unreadable; the latter is added to `skipped`.
template <class Record>
const ModelRecord* read_record(const Platform& platform, std::string_view kind, Record& out,
                               std::vector<std::string>& skipped) {
  const ModelRecord* record = platform.find_model(kind);
  if (record == nullptr || record->kind != kind) return nullptr;
  Result<Record> read = Record::read(record->parameters);
  if (!read) {
    skipped.push_back(fmt::format("model {}: {}", record->name, read.error().message()));
    return nullptr;
  }
  out = *read;
  return record;
}

// Limits the time of a narrow GEMM. Measured rows of narrow GEMMs include the activation cast of an inference
// engine, which takes three times its bytes at full bandwidth (2.9 us for 10^6 elements on H100) and
// dominates where columns are few. A training step casts in one pass, so the GEMM takes at most the 16-bit
// GEMM plus that cast.
void hold_cast(const Operation& operation, const KernelModel& model, const DeviceFigures& figures,
               ExplainedEstimate& alone) {
  const auto& s = std::get<GemmShape>(operation.shape);
  Operation sixteen_bit = operation;
  sixteen_bit.dtype = DType::bf16;
  const ExplainedEstimate base = model.explain(sixteen_bit);
  const double operands =
      static_cast<double>(s.batch) * static_cast<double>(s.k) * static_cast<double>(s.m + s.n);
  const Microseconds cast{figures.kernel_floor_us +
                          kCastBytes * operands / (kCastShare * figures.memory.per_us)};
  Estimate& t = alone.estimate;
  if (t.time <= base.estimate.time + cast) return;
  const Microseconds measured = t.time;
  t.time = base.estimate.time + cast;
  t.p10 = std::min(t.p10, base.estimate.p10 + cast);
  t.p90 = std::max(base.estimate.p90 + cast, std::min(measured, t.time * kSlowestCastSide));
  alone.record = base.record;
  alone.sustained = base.sustained;
}

// Updates the factors of a sibling, which were computed for the figures `before`, after a platform file
// changed them to `now`.
void move(KernelSibling& sibling, const Device& before, const Device& now) {
  sibling.memory *= now.memory_bandwidth / before.memory_bandwidth;
  for (const DType dtype : {DType::bf16, DType::fp16}) {
    const auto then = before.peak(dtype), peak = now.peak(dtype);
    if (!then || !peak) continue;
    sibling.compute *= *peak / *then;
    sibling.sustained *= *peak / *then;
    return;
  }
}

}  // namespace

TrainingKernels::TrainingKernels(const Platform& platform, const TrainingKernelOptions& options)
    : model_(std::make_shared<const KernelModel>(platform)),
      figures_(figures_of(platform.device)),
      has_fp8_peak_(platform.device.peak(DType::fp8).has_value()) {
  const ModelRecord* clock = read_record(platform, kSustainedClockKind, clock_, skipped_);
  clock_is_assumed_ =
      clock != nullptr ? clock->provenance.source == FigureSource::assumed : !model_->has_measured_products();
  read_record(platform, kStepFactorsKind, factors_, skipped_);
  if (const ModelRecord* experts = platform.find_model(ExpertKernels::kRecordKind);
      experts != nullptr && experts->kind == ExpertKernels::kRecordKind) {
    experts_ = std::make_shared<const detail::OnDemand<ExpertKernels>>(
        experts->parameters, ExpertKernels::read, experts->is_shipped);
    if (!experts_->can_be_read())
      skipped_.push_back(fmt::format("model {}: {}", experts->name, experts_->problem()));
  }
  // An unreadable sibling record is reported by KernelModel.
  if (const ModelRecord* sibling = platform.find_model(kKernelSiblingKind)) {
    if (auto read = KernelSibling::read(sibling->parameters)) {
      sibling_ = *std::move(read);
      move(*sibling_, with_figures(platform.device, sibling->measured_with), platform.device);
      clock_.log_band = std::max(clock_.log_band, kClockOfSibling);
    }
  }
  set_options(options);
}

// Factors of the platform are multiplied into the options. The prices of the previous options move to the
// cache.
void TrainingKernels::set_options(const TrainingKernelOptions& options) {
  const TrainingKernelOptions before = options_;
  options_ = options;
  options_.gemm_factor *= factors_.gemm;
  options_.weight_gradient_factor *= factors_.weight_gradient;
  options_.attention_factor *= factors_.attention;
  options_.fp8_gemm_factor *= factors_.fp8_gemm;
  options_.unmeasured_kernels_factor *= factors_.unmeasured_kernels;
  options_.memory_bound_factor *= factors_.memory_bound;
  options_.expert_factor *= factors_.experts;
  constexpr std::size_t kMostRemembered = 100'000;
  if (priced_.size() > kMostRemembered) priced_.clear();
  if (options_ == before) return;
  others_.of(before) = std::move(priced_);
  priced_ = std::move(others_.of(options_));
}

const PricedOperation& TrainingKernels::price(const Operation& operation) {
  const auto [place, fresh] = priced_.try_emplace(operation);
  if (fresh) place->second = compute(operation);
  return place->second;
}

// An fp8 GEMM without any measurement, here or on similar devices: the 16-bit time multiplied by an assumed
// ratio.
ExplainedEstimate TrainingKernels::in_fp8(const Operation& operation, const ExplainedEstimate& alone) const {
  Operation sixteen_bit = operation;
  sixteen_bit.dtype = DType::bf16;
  const ExplainedEstimate base = model_->explain(sixteen_bit);
  const double ratio = options_.fp8_gemm_time_ratio;
  ExplainedEstimate out = base;
  out.estimate = base.estimate.scaled(ratio);
  Estimate& t = out.estimate;
  t.p10 = std::min(t.p10, base.estimate.time * (kFp8FastSide * ratio));
  t.p90 = std::max(t.p90, base.estimate.time * (kFp8SlowSide * ratio));
  t.time = std::max(t.time, model_->analytic().lower_bound(operation));
  t.p90 = std::max(t.p90, t.time);
  t.source = EstimateSource::assumed;
  out.extrapolated = base.extrapolated || alone.extrapolated;
  return out;
}

// nt (weight gradients) and nn (input gradients) were not measured as grouped GEMMs: wider band.
std::optional<ExplainedEstimate> TrainingKernels::of_experts(const Operation& operation) const {
  if (!is_expert_product(operation) || experts_ == nullptr || experts_->get() == nullptr) return std::nullopt;
  const auto rates = experts_->get()->rates(model_->analytic().device(), operation.dtype, sibling_);
  if (!rates) return std::nullopt;
  const auto& s = std::get<GemmShape>(operation.shape);
  GroupedProduct product;
  product.experts = static_cast<double>(s.batch);
  product.m = static_cast<double>(s.m);
  product.n = static_cast<double>(s.n);
  product.k = static_cast<double>(s.k);
  product.operand_bytes = operation.dtype == DType::fp4 ? 0.5 : element_size(operation.dtype).value();
  product.output_bytes = element_size(s.output).value() * (s.accumulates ? 2 : 1);
  product.weight_gradient = s.layout == GemmLayout::nt;
  const double us = grouped_product_us(*rates, figures_, product);
  const double wider = s.layout == GemmLayout::tn ? 0 : kExpertGradient;
  const ExpertBand band = expert_band(*rates, product.n * (product.weight_gradient ? product.m : product.k));
  ExplainedEstimate out;
  out.estimate = {Microseconds{us}, Microseconds{us * std::exp(band.log_p10 - wider)},
                  Microseconds{us * std::exp(band.log_p90 + wider)}, EstimateSource::fitted};
  out.record = ExpertKernels::kRecordKind;
  return out;
}

// A fused update streams its data, and the bandwidth is a better predictor than measurements of other sizes,
// tensor counts or implementations: measured unfused updates of A100s reach 4 to 18 % of the bandwidth, those
// of a GH200 more than 100 %.
void TrainingKernels::hold_update(const Operation& operation, ExplainedEstimate& alone) const {
  const auto* update = std::get_if<OptimizerShape>(&operation.shape);
  if (update == nullptr || update->implementation != OptimizerImplementation::fused) return;
  if (is_measured(alone.estimate.source) && !alone.extrapolated) return;
  const double streamed_us = work_of(operation).bytes().value() / figures_.memory.per_us;
  const auto at = [&](double share) { return Microseconds{figures_.kernel_floor_us + streamed_us / share}; };
  Estimate& t = alone.estimate;
  if (t.time < at(kFastestUpdate) || t.time > at(kSlowestUpdate)) {
    t.time = std::clamp(t.time, at(kFastestUpdate), at(kSlowestUpdate));
    t.source = EstimateSource::analytic;
    alone.record = {};
  }
  t.p10 = at(kFastestUpdate);
  t.p90 = at(kSlowestUpdateBand);
}

PricedOperation TrainingKernels::compute(const Operation& operation) const {
  // An amount of host work without a kernel; it counts only in launches.
  if (const auto* amount = std::get_if<AmountShape>(&operation.shape);
      amount != nullptr && amount->kernel_class == KernelClass::none) {
    return {Estimate{}, KernelClass::none, options_.expert_factor, 0, {}};
  }
  const std::optional<ExplainedEstimate> of_experts_alone = of_experts(operation);
  ExplainedEstimate alone = of_experts_alone ? *of_experts_alone : model_->explain(operation);
  const auto* product = std::get_if<GemmShape>(&operation.shape);
  const bool narrow =
      operation.dtype == DType::fp8 || operation.dtype == DType::fp8_block || operation.dtype == DType::fp4;
  if (product != nullptr && narrow && has_fp8_peak_ && !is_measured(alone.estimate.source) &&
      alone.record.empty()) {
    alone = in_fp8(operation, alone);
  }
  if (product != nullptr && narrow && !of_experts_alone) hold_cast(operation, *model_, figures_, alone);
  hold_update(operation, alone);
  Estimate time = alone.estimate;
  // Weight gradients reach less of the peak, since they read transposed operands and write fp32; records
  // fitted on such GEMMs already include this. The backward GEMMs of the operator measurements are excluded:
  // they reach 99 % of the peak, probably because their operands are gradients of a mean over 1e7 and more
  // elements, which fp16 rounds to zero.
  if (product != nullptr && (product->batch == 1 || of_experts_alone) && product->layout == GemmLayout::nt &&
      operation.direction == Direction::forward && !alone.layout_measured) {
    time = time.scaled(options_.weight_gradient_factor);
  }
  const KernelClass kernel_class = kernel_class_of(operation);
  const Work work = work_of(operation);
  if (is_matrix_work(kernel_class))
    time = time.scaled(clock_.factor(kernel_class, operation.dtype, work.flops, alone.sustained));
  const auto factor_of = [&](EstimateSource source) {
    double factor = kernel_class == KernelClass::gemm        ? options_.gemm_factor
                    : kernel_class == KernelClass::attention ? options_.attention_factor
                                                             : options_.memory_bound_factor;
    if (kernel_class == KernelClass::gemm && narrow) factor *= options_.fp8_gemm_factor;
    if (!is_measured(source)) factor *= options_.unmeasured_kernels_factor;
    return factor;
  };
  // A grouped GEMM is at least as slow as one GEMM with all its rows; long runs of such GEMMs are measured.
  if (of_experts_alone) {
    GemmShape whole = *product;
    (whole.layout == GemmLayout::nt ? whole.k : whole.m) *= whole.batch;
    whole.batch = 1;
    const Estimate bound = compute({whole, operation.dtype, operation.direction}).time;
    const double us = bound.time.value() / factor_of(bound.source);
    if (us > time.time.value()) time = time.scaled(us / time.time.value());
  }
  double factor = factor_of(alone.estimate.source);
  if (of_experts_alone || std::holds_alternative<MovementShape>(operation.shape))
    factor *= options_.expert_factor;
  return {time.scaled(factor), kernel_class, static_cast<double>(work.kernels),
          is_matrix_work(kernel_class) ? work.flops.value() : 0.0, alone.record};
}

}  // namespace stepcast
