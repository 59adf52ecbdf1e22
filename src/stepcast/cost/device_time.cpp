#include "stepcast/cost/device_time.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "stepcast/cost/convolution_time.h"
#include "stepcast/operation/shape_changes.h"

namespace stepcast {
namespace {

// Half-width of the bands of closed forms, as a factor.
constexpr double kClosedFormBand = 1.4;
// Start of a product whose operands come from memory and not from the run before: cuBLAS products of BERT-small
// and ViT traces on an H100 against records of repeated runs.
constexpr double kColdProductUs = 2;
// A sum of many numbers over a streaming kernel of as few bytes: partial sums of a block, then of its warps. PyTorch's
// reductions of at most 64 blocks take 8.8 us on a V100 and 7.8 on an A100 where element-wise kernels take 2.0 and 2.1
// (ns_resolution, nccl_data), 8 and 3 on the A100 of trace_diff_control.
constexpr double kReductionUs = 5;
// From this size on a cache has two partitions, and data in the other one counts as far away.
constexpr double kPartitionedCacheBytes = 20e6;
// Share of an element-wise kernel's data, up to the size of the cache, that is found there; assumed: its inputs, and no
// room for its output.
constexpr double kCachedShare = 0.5;
// Rate of hipBLASLt's products on an MI300X over what products of other makers say at the same share of the
// peak: 512x4096x4096 to 512x10240x4096 of Flux traces.
constexpr double kAmdProducts = 0.62;
// Share of the memory bandwidth that the backward of max pooling reaches: every input looks through the windows
// around it. 0.29 in a ResNet-50 trace on a V100 and in a VGG-13 trace on an H100.
constexpr double kPoolingBackward = 0.29;
// ROCm's kernels with computed offsets relative to those of CUDA: strided element-wise kernels of Flux and pooling
// of ResNet-18 on an MI300X.
constexpr double kAmdIrregular = 0.4;
// Batch norm with one block per channel: elements of a channel per microsecond, and passes over them in the
// backward. ResNet-18 on an MI300X, 64 channels.
constexpr double kElementsPerUsOfBlock = 2500, kStatisticsPassesBackward = 3.5;

}  // namespace

double DeviceTime::floor_us(const Operation& operation, std::string_view record) {
  std::string key = fmt::format("{} {}", record, family_of(operation));
  const auto found = floors_.find(key);
  if (found != floors_.end()) return found->second;
  const ExplainedEstimate least = model_->explain(smallest_like(operation));
  const double us = least.record == record ? least.estimate.time.value() : 0;
  floors_.emplace(std::move(key), us);
  return us;
}

Estimate DeviceTime::without_launch(const Operation& operation, const PricedOperation& priced) {
  if (priced.record.empty() || priced.time.time.value() <= 0) return priced.time;
  const double floor = floor_us(operation, priced.record);
  const double shortest = model_->analytic().figures().kernel_floor_us;
  // Fused attention is measured by the GPU's own clock: what it takes at least is its own.
  if (floor <= shortest || std::holds_alternative<AttentionShape>(operation.shape)) return priced.time;
  const double launch = floor - shortest;
  const Estimate physics = model_->analytic().estimate(operation);
  // 0 at the floor, 1 where the kernel takes as long as the launch.
  const double known = std::clamp((priced.time.time.value() - floor) / floor, 0.0, 1.0);
  const auto between = [&](Microseconds a, Microseconds b) {
    const double alone = std::max(b.value() - launch, shortest);
    return Microseconds{
        std::exp((1 - known) * std::log(std::max(a.value(), 1e-3)) + known * std::log(alone))};
  };
  Estimate time = {between(physics.time, priced.time.time), between(physics.p10, priced.time.p10),
                   between(physics.p90, priced.time.p90),
                   known > 0.5 ? priced.time.source : weaker(physics.source, priced.time.source)};
  if (time.time > priced.time.time) time = {priced.time.time, priced.time.p10, priced.time.p90, time.source};
  return time;
}

DType DeviceTime::dtype_as_run(DType dtype, const SeenKernels& seen) const {
  if (dtype != DType::fp32 || made_by_amd_ || !model_->analytic().figures().has_matrix_units(DType::tf32))
    return dtype;
  return seen.times > 0 ? dtype : DType::tf32;
}

Estimate DeviceTime::of(const Operation& operation, const PricedOperation& priced, const SeenKernels& seen) {
  const DeviceFigures& figures = model_->analytic().figures();
  const auto within = [](double us, double band, EstimateSource source) {
    return Estimate{Microseconds{us}, Microseconds{us / band}, Microseconds{us * band}, source};
  };
  if (const auto* shape = std::get_if<ConvolutionShape>(&operation.shape)) {
    const double us = convolution_us(*shape, dtype_as_run(operation.dtype, seen), operation.direction,
                                     figures, seen, made_by_amd_);
    if (us > 0 && std::isfinite(us)) return within(us, kClosedFormBand, EstimateSource::analytic);
  }
  Estimate time = without_launch(operation, priced);
  double factor = 1, added_us = 0;
  if (std::holds_alternative<GemmShape>(operation.shape)) {
    if (made_by_amd_) {
      factor = 1 / kAmdProducts;
      added_us = figures.kernel_floor_us * (1 - factor);
    }
    added_us += kColdProductUs;
  }
  if (std::holds_alternative<ReductionShape>(operation.shape)) added_us += kReductionUs;
  const double bytes = work_of(operation).bytes().value();
  const auto streamed_us = [&](double share) {
    return figures.kernel_floor_us + bytes / (figures.memory.per_us * share);
  };
  if (seen.has(KernelImplementation::pooling_backward)) {
    return within(streamed_us(made_by_amd_ ? kAmdIrregular * kPoolingBackward : kPoolingBackward),
                  kClosedFormBand, EstimateSource::analytic);
  }
  if (made_by_amd_ &&
      (seen.has(KernelImplementation::pooling_forward) || seen.has(KernelImplementation::strided))) {
    factor = 1 / kAmdIrregular;
  }
  if (const auto* norm = std::get_if<NormShape>(&operation.shape);
      norm != nullptr && seen.has(KernelImplementation::channel_statistics)) {
    const double waves = std::ceil(static_cast<double>(norm->rows) / (2 * figures.sm_count));
    const double passes = operation.direction == Direction::forward ? 1 : kStatisticsPassesBackward;
    added_us = passes * waves * static_cast<double>(norm->cols) / kElementsPerUsOfBlock;
  }
  if (std::holds_alternative<ElementwiseShape>(operation.shape) && !made_by_amd_) {
    // What the kernel before left in the cache, and what this one leaves there.
    const double cache = figures.l2_bytes > kPartitionedCacheBytes ? figures.l2_bytes / 2 : figures.l2_bytes;
    const double saved_us =
        kCachedShare * std::min(bytes, cache) *
        (1 / figures.memory.per_us - 1 / std::max(figures.l2.per_us, figures.memory.per_us));
    added_us -= std::min(saved_us, std::max(time.time.value() - figures.kernel_floor_us, 0.0));
  }
  for (Microseconds* edge : {&time.time, &time.p10, &time.p90})
    *edge = Microseconds{std::max(edge->value() * factor + added_us, 0.5 * figures.kernel_floor_us)};
  return time;
}

}  // namespace stepcast
