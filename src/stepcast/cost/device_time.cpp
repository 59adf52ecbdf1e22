#include "stepcast/cost/device_time.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <string_view>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "stepcast/base/number.h"
#include "stepcast/cost/detail/gemm_tiles.h"
#include "stepcast/cost/families/fitted_kernel.h"
#include "stepcast/cost/shortest_kernel.h"
#include "stepcast/operation/operation.h"
#include "stepcast/operation/shape_changes.h"

namespace stepcast {

namespace {

// Half-width of the bands of closed forms, as a factor.
constexpr double kClosedFormBand = 1.4;
// Start of a product whose operands come from memory and not from the run before: cuBLAS products of BERT-small
// and ViT traces on an H100 against records of repeated runs.
constexpr double kColdProductUs = 2;
// Time over that of vectorized kernels of as many bytes: PyTorch's element-wise kernels on tensors that are not contiguous, and on
// tensors of several types. GPT-2, BERT and Llama on our H100, kernels of 20 us and more; the H200's are the test.
constexpr double kStrided = 1.9, kMixedTypes = 1.6;
// Two events around a kernel, as records with cold caches were timed, hold the gap before it, too, which a trace has by itself: 1.34
// us on an H100 and 1.09 on an H200 (`gap_of_a_full_stream` of data/measured).
constexpr double kGapOfFullStreamUs = 1.2;
// A sum of many numbers over a streaming kernel of as few bytes: partial sums of a block, then of its warps. PyTorch's
// reductions of at most 64 blocks take 8.8 us on a V100 and 7.8 on an A100 where element-wise kernels take 2.0 and 2.1
// (ns_resolution, nccl_data), 8 and 3 on the A100 of trace_diff_control.
constexpr double kReductionUs = 5;
// From this size on a cache has two partitions, and data in the other one counts as far away.
constexpr double kPartitionedCacheBytes = 20e6;
// Share of an element-wise kernel's data, up to the size of the cache, that is found there; assumed: its inputs, and no
// room for its output.
constexpr double kCachedShare = 0.5;
// Share of the memory bandwidth that the backward of max pooling reaches: every input looks through the windows
// around it. 0.29 in a ResNet-50 trace on a V100 and in a VGG-13 trace on an H100.
constexpr double kPoolingBackward = 0.29;
// Rate of fused attention in PyTorch on ROCm (AOTriton's compiled kernels) relative to the closed form of hand-written ones:
// the two attentions of PyTorch in a trace of FLUX on an MI300X, 1,024 tokens of one head of 512 and 77 of twelve of 64.
constexpr double kAmdAttention = 0.6;
// Rows that do not begin at whole pieces of 16 bytes are loaded in smaller ones: products of a DLRM on an A100, kernels `align1`
// beside `align4` of 25 us and more (trace_diff_control).
constexpr double kPieceBytes = 16, kUnaligned = 1.16;
// From Hopper on NVIDIA's asynchronous products need whole pieces, too; elsewhere kernels of Ampere run. Their share of the rate: of
// convolutions that of FlashAttention 2 beside 3 (0.38 and 0.60 of the peak), of products that of the head of BERT on an H100
// (30,522 words, 240 TFLOP/s each way, where whole pieces are priced at 610 to 690). Peak from which a device has them: as in
// detail/attention_blocks.cpp.
constexpr double kAsynchronousPerUs = 600e6, kWithoutAsynchronous = 0.63, kProductWithoutAsynchronous = 0.42;
// Pieces below 4 bytes go through registers, in kernels of Turing: the head of GPT-2 (50,257 words) on an H100, 95 to 147 TFLOP/s
// each way.
constexpr double kAsynchronousCopyBytes = 4, kThroughRegisters = 1.9;
// ROCm's kernels with computed offsets relative to those of CUDA: strided element-wise kernels of Flux and pooling
// of ResNet-18 on an MI300X.
constexpr double kAmdIrregular = 0.4;
// Batch norm with one block per channel: elements of a channel per microsecond, and passes over them in the
// backward. ResNet-18 on an MI300X, 64 channels.
constexpr double kElementsPerUsOfBlock = 2500, kStatisticsPassesBackward = 3.5;

// Shortest kernels of some sorts over the shortest kernel there is: medians of those on less than 200 kB in recorded
// traces of A100, H100, B300 and MI300X. Reductions take two phases in a block, gathers and scatters a chain of
// dependent loads, sorting several passes.
constexpr double kShortestReduction = 2.3, kShortestGather = 2, kShortestIndexing = 3.6, kShortestSort = 4.4,
                 kShortestSelection = 2.8, kShortestConcatenation = 1.6;

using Seen = KernelImplementation;

double shortest_over_floor(const Operation* operation, Seen seen) {
  switch (seen) {
    case Seen::indexing: return kShortestIndexing;
    case Seen::sorting: return kShortestSort;
    case Seen::selection: return kShortestSelection;
    case Seen::concatenation: return kShortestConcatenation;
    default: break;
  }
  if (operation == nullptr) return 1;
  if (std::holds_alternative<ReductionShape>(operation->shape)) return kShortestReduction;
  const auto* movement = std::get_if<MovementShape>(&operation->shape);
  if (movement == nullptr) return 1;
  if (movement->kind == MovementKind::concatenate) return kShortestConcatenation;
  const bool scattered = movement->kind == MovementKind::gather || movement->kind == MovementKind::scatter;
  return scattered ? kShortestGather : 1;
}

// Share of the peak of ordinary arithmetic that products reach, whatever their size as long as they fill the SMs:
// without tuned code, with it, gradients of weights (sums over all pixels, in parts), and where no kernel is named.
// Medians of the fp32 convolutions of a ResNet-50 trace on a V100.
constexpr double kPlainRate = 0.56, kTunedRate = 0.75, kWeightGradientRate = 0.6, kUsualRate = 0.66;
// On GPUs whose SMs have 128 lanes for it (H100 and later), which have TF32 units for the same tensors: ideal over measured time of
// 77 fp32 convolutions of 60 us and more on an H200 (data/measured); 0.43 on an H100, too. None of them is a Winograd.
constexpr double kWideRate = 0.44, kWidePerUs = 3e7;
// Winograd: batched products between the transforms, and one kernel for all. The same trace.
constexpr double kWinogradRate = 0.75, kFusedRate = 0.61;
// Outputs of a block of such a product in either extent.
constexpr double kBlock = 64;
// Rate on matrix units relative to matrix products of the same size: MIOpen's implicit products on an MI300X reach 0.2 to 0.3 of its peak.
constexpr double kAmdRate = 0.55;
// Share of the memory bandwidth of copies from one layout into another, and of Winograd transforms.
constexpr double kLayoutCopy = 0.85, kAmdLayoutCopy = 0.5, kTransform = 0.8;
// Such a copy is cut into pieces of 32 channels and 32 pixels, whole ones; elements that an SM moves per microsecond: cuDNN's
// nchwToNhwc of inputs and weights, 3 to 320 channels, 1 to 1,024 pixels or taps, on an H100.
constexpr double kTransposed = 32, kTransposedPerUsOfSm = 5500;
// Channels of one tap that a step of CUTLASS's implicit products takes, in bytes; fewer are padded to them ("32x4" and "16x4" in names
// of bf16 and tf32 kernels, `fprop_optimized`).
constexpr double kStepBytes = 64;

// Of the rate of matrix units that a library of NVIDIA's reaches where operands do not come in whole pieces.
double share_without_pieces(DType dtype, const DeviceFigures& device, double share = kWithoutAsynchronous) {
  return device.matrix_of(dtype).per_us >= kAsynchronousPerUs ? share : 1;
}

// Time of a product of NVIDIA's over that of one whose operands come in whole pieces, by what the kernels' names say of the pieces,
// or else the extents that are known to lie next to each other.
double slower_by_pieces(const GemmShape& product, DType dtype, const DeviceFigures& device,
                        const SeenKernels& seen) {
  if (!device.has_matrix_units(dtype)) return 1;
  const double element = element_size(dtype).value();
  double piece = kPieceBytes;
  if (seen.has(KernelImplementation::pieces_of_one)) {
    piece = element;
  } else if (seen.has(KernelImplementation::pieces_of_two)) {
    piece = 2 * element;
  } else {
    for (const std::int64_t extent : {product.n, product.k})
      while (piece > element && std::fmod(as_double(extent) * element, piece) != 0) piece /= 2;
  }
  if (piece >= kPieceBytes) return 1;
  return kUnaligned / share_without_pieces(dtype, device, kProductWithoutAsynchronous) *
         (piece < kAsynchronousCopyBytes ? kThroughRegisters : 1);
}

struct Convolution {
  const ConvolutionShape& shape;
  DType dtype;
  const DeviceFigures& device;
  const SeenKernels& seen;
  bool amd;
  double element = std::max(element_size(dtype).value(), 1.0);
  double groups = as_double(std::max<std::int64_t>(shape.groups, 1));
  double pixels = as_double(shape.out_height()) * as_double(shape.out_width());
  double input_bytes = as_double(shape.batch) * as_double(shape.in_channels) * as_double(shape.height) *
                       as_double(shape.width) * element;
  double output_bytes = as_double(shape.batch) * as_double(shape.out_channels) * pixels * element;
  double weight_bytes = as_double(shape.out_channels) * as_double(shape.in_channels) / groups *
                        as_double(shape.kernel_height) * as_double(shape.kernel_width) * element;
  bool units = device.has_matrix_units(dtype);

  [[nodiscard]] double memory_us(double bytes, double share) const {
    return bytes / (device.memory.per_us * share);
  }

  [[nodiscard]] bool wide() const {
    return device.has_matrix_units(DType::tf32) && device.matrix_of(dtype).per_us >= kWidePerUs;
  }
  // Of ordinary arithmetic: the time-weighted mean of what the kernels reach.
  [[nodiscard]] double rate(Seen plain, Seen tuned, double tuned_rate) const {
    const double slow = seen.us(plain), fast = seen.us(tuned);
    if (slow + fast > 0) return (slow * kPlainRate + fast * tuned_rate) / (slow + fast);
    return wide() ? kWideRate : kUsualRate;
  }
  // A product in ordinary arithmetic at a share of the peak, or of the SMs that its blocks fill.
  [[nodiscard]] double ordinary_us(const detail::Product& p, double share, bool splits) const {
    const double blocks = p.batch * std::ceil(p.m / kBlock) * std::ceil(p.n / kBlock);
    const double filled = splits ? 1 : std::min(1.0, blocks / device.sm_count);
    return 2 * p.batch * p.m * p.n * p.k / (device.matrix_of(dtype).per_us * share * filled);
  }

  [[nodiscard]] double direct_us(Direction pass) const {
    double channels = as_double(shape.in_channels) / groups;
    const double taps = as_double(shape.kernel_height) * as_double(shape.kernel_width);
    const bool few =
        !amd && pass == Direction::forward && taps > 1 && groups == 1 && channels * element < kStepBytes;
    if (units) {
      const double piece = (few ? kStepBytes : kPieceBytes) / element;
      channels = std::ceil(channels / piece) * piece;
    }
    detail::Product p{groups,
                      as_double(shape.batch) * pixels,
                      as_double(shape.out_channels) / groups,
                      channels * taps,
                      dtype,
                      element,
                      element};
    double share = rate(Seen::plain_convolution, Seen::tuned_convolution, kTunedRate);
    if (pass == Direction::input_gradient) {
      std::swap(p.n, p.k);
      share = rate(Seen::plain_data_gradient, Seen::tuned_data_gradient, kTunedRate);
    } else if (pass == Direction::weight_gradient) {
      std::swap(p.m, p.k);
      share = rate(Seen::plain_weight_gradient, Seen::tuned_weight_gradient, kWeightGradientRate);
    }
    // The unfolded input is never in memory.
    const double streamed_us = memory_us(input_bytes + output_bytes + weight_bytes, kTransform);
    if (!units) {
      const bool splits = pass == Direction::weight_gradient;
      return std::max(ordinary_us(p, share, splits), streamed_us) + device.kernel_floor_us;
    }
    detail::Tiling tiling = few ? best_padded_tiling(p, device) : best_tiling(p, device);
    if (amd) tiling.compute_us /= kAmdRate;
    if (few) tiling.compute_us /= share_without_pieces(dtype, device);
    tiling.memory_us = streamed_us;
    return tiling.time_us() + device.kernel_floor_us;
  }

  [[nodiscard]] double tiles(double size) const {
    return as_double(shape.batch) * std::ceil(as_double(shape.out_height()) / size) *
           std::ceil(as_double(shape.out_width()) / size);
  }
  [[nodiscard]] double product_us(double batch, double m, double n, double k) const {
    return ordinary_us({batch, m, n, k, dtype, element, element}, kWinogradRate, false);
  }

  [[nodiscard]] double winograd_us(Direction pass) const {
    const double in = as_double(shape.in_channels), out = as_double(shape.out_channels), t = tiles(4);
    const double transformed = 36 * element * (t * in + t * out + in * out);
    const double products = pass == Direction::weight_gradient  ? product_us(36, in, out, t)
                            : pass == Direction::input_gradient ? product_us(36, t, in, out)
                                                                : product_us(36, t, out, in);
    return products + memory_us(transformed + input_bytes + output_bytes + weight_bytes, kTransform) +
           4 * device.kernel_floor_us;
  }
  [[nodiscard]] double fused_winograd_us() const {
    const double multiplications =
        16 * tiles(2) * as_double(shape.in_channels) * as_double(shape.out_channels);
    return std::max(2 * multiplications / (device.matrix_of(dtype).per_us * kFusedRate),
                    memory_us(input_bytes + output_bytes + weight_bytes, kTransform)) +
           2 * device.kernel_floor_us;
  }

  [[nodiscard]] bool transforms_apply() const {
    return shape.kernel_height == 3 && shape.kernel_width == 3 && shape.stride == 1 && shape.dilation == 1 &&
           shape.groups <= 1;
  }
  [[nodiscard]] bool seen_any(std::initializer_list<Seen> of) const {
    return std::ranges::any_of(of, [&](Seen s) { return seen.has(s); });
  }

  [[nodiscard]] double pass_us(Direction pass) const {
    if (!transforms_apply()) return direct_us(pass);
    const bool weights = pass == Direction::weight_gradient;
    const bool unknown =
        !seen_any({Seen::winograd, Seen::winograd_fused, Seen::winograd_weight_gradient,
                   Seen::plain_convolution, Seen::plain_data_gradient, Seen::plain_weight_gradient,
                   Seen::tuned_convolution, Seen::tuned_data_gradient, Seen::tuned_weight_gradient});
    if (unknown && !units && !wide()) {
      const double fused = weights ? direct_us(pass) : fused_winograd_us();
      return std::min({winograd_us(pass), fused, direct_us(pass)});
    }
    if (seen.has(weights ? Seen::winograd_weight_gradient : Seen::winograd)) return winograd_us(pass);
    if (!weights && seen.has(Seen::winograd_fused)) return fused_winograd_us();
    return direct_us(pass);
  }

  // The first layer of a network needs no gradient of its input; old traces do not say so, their kernels do.
  [[nodiscard]] bool weights_alone() const {
    const bool weights =
        seen_any({Seen::winograd_weight_gradient, Seen::plain_weight_gradient, Seen::tuned_weight_gradient});
    const bool others =
        seen_any({Seen::winograd, Seen::winograd_fused, Seen::plain_convolution, Seen::plain_data_gradient,
                  Seen::tuned_convolution, Seen::tuned_data_gradient});
    return weights && !others;
  }

  // One copy of a [batch, channels, pixels] tensor into another layout. NVIDIA's transpose whole pieces of 32 x 32.
  [[nodiscard]] double layout_copy_us(double batch, double channels, double across) const {
    const double streamed_us =
        memory_us(2 * batch * channels * across * element, amd ? kAmdLayoutCopy : kLayoutCopy);
    const auto whole = [](double extent) { return std::ceil(extent / kTransposed) * kTransposed; };
    const double moved_us =
        amd ? 0 : batch * whole(channels) * whole(across) / (device.sm_count * kTransposedPerUsOfSm);
    return std::max(streamed_us, moved_us) + device.kernel_floor_us;
  }
  // Copies between layouts that were seen, each time the operation is done: as many as there are, in the order in which a
  // library needs them.
  [[nodiscard]] double layout_us(Direction direction) const {
    const double input_us = layout_copy_us(as_double(shape.batch), as_double(shape.in_channels),
                                           as_double(shape.height) * as_double(shape.width));
    const double output_us = layout_copy_us(as_double(shape.batch), as_double(shape.out_channels), pixels);
    const double weight_us =
        layout_copy_us(as_double(shape.out_channels), as_double(shape.in_channels) / groups,
                       as_double(shape.kernel_height) * as_double(shape.kernel_width));
    const auto first = [this](Seen of, std::initializer_list<double> in_order) {
      double left = seen.per_operation(of), us = 0;
      for (const double one : in_order) {
        us += std::min(left, 1.0) * one;
        left = std::max(left - 1, 0.0);
      }
      return us;
    };
    if (direction == Direction::forward) {
      return first(Seen::to_channels_last, {input_us, weight_us}) +
             first(Seen::to_channels_first, {output_us}) +
             first(Seen::layout_transpose, {input_us, output_us, weight_us});
    }
    const double transposed_us =
        first(Seen::layout_transpose, {output_us, input_us, input_us, output_us, weight_us, weight_us});
    switch (direction) {
      case Direction::input_gradient:
        return first(Seen::to_channels_last, {output_us, weight_us}) +
               first(Seen::to_channels_first, {input_us}) + transposed_us;
      case Direction::weight_gradient:
        return first(Seen::to_channels_last, {output_us, input_us}) +
               first(Seen::to_channels_first, {weight_us}) + transposed_us;
      default:  // one after the other: each copies the output's gradient
        return first(Seen::to_channels_last, {output_us, input_us, output_us, weight_us}) +
               first(Seen::to_channels_first, {input_us, weight_us}) + transposed_us;
    }
  }

  [[nodiscard]] double us(Direction direction) const {
    if (direction == Direction::backward && weights_alone()) direction = Direction::weight_gradient;
    double time = layout_us(direction);
    if (direction != Direction::backward) return time + pass_us(direction);
    return time + pass_us(Direction::input_gradient) + pass_us(Direction::weight_gradient);
  }
};

// Tables of products repeat one of them, whose operands then are in the cache; in a step its weights were used a step ago.
double cold_weights_us(const GemmShape& product, DType dtype, const DeviceFigures& device) {
  const double element = element_size(dtype).value();
  const double m = as_double(product.m), n = as_double(product.n), k = as_double(product.k);
  const double all = as_double(product.batch) * (m * k + k * n + m * n) * element;
  return all < device.l2_bytes ? k * n * element / device.memory.per_us : 0;
}

// What the kernel before left in the cache, and what this one leaves there.
double saved_by_cache_us(double bytes, const DeviceFigures& device) {
  const double cache = device.l2_bytes > kPartitionedCacheBytes ? device.l2_bytes / 2 : device.l2_bytes;
  return kCachedShare * std::min(bytes, cache) *
         (1 / device.memory.per_us - 1 / std::max(device.l2.per_us, device.memory.per_us));
}

// Kernels that are seen for what they do, whatever was measured of their like.
std::optional<Estimate> closed_form(const Operation& operation, DType dtype_as_run, const SeenKernels& seen,
                                    const DeviceFigures& device, bool made_by_amd) {
  const auto within = [](double us) {
    return Estimate{Microseconds{us}, Microseconds{us / kClosedFormBand}, Microseconds{us * kClosedFormBand},
                    EstimateSource::analytic};
  };
  if (const auto* shape = std::get_if<ConvolutionShape>(&operation.shape)) {
    const double us = convolution_us(*shape, dtype_as_run, operation.direction, device, seen, made_by_amd);
    if (us > 0 && std::isfinite(us)) return within(us);
  }
  const double bytes = work_of(operation).bytes().value();
  if (seen.has(KernelImplementation::row_gather))
    return within(device.kernel_floor_us + bytes / device.memory.per_us);
  if (seen.has(KernelImplementation::pooling_backward)) {
    const double share = made_by_amd ? kAmdIrregular * kPoolingBackward : kPoolingBackward;
    return within(device.kernel_floor_us + bytes / (device.memory.per_us * share));
  }
  return std::nullopt;
}

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
  if (floor <= shortest) return priced.time;
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
  return seen.times > 0 && seen.here ? dtype : DType::tf32;
}

Estimate DeviceTime::of(const Operation& operation, const PricedOperation& priced, const SeenKernels& seen) {
  const DeviceFigures& figures = model_->analytic().figures();
  if (const auto known =
          closed_form(operation, dtype_as_run(operation.dtype, seen), seen, figures, made_by_amd_))
    return *known;
  Estimate time = without_launch(operation, priced);
  const bool timed_by_events = priced.record.find(kColdCaches) != std::string_view::npos;
  double factor = 1, added_us = timed_by_events ? -kGapOfFullStreamUs : 0;
  if (const auto* product = std::get_if<GemmShape>(&operation.shape)) {
    if (!timed_by_events) added_us += kColdProductUs + cold_weights_us(*product, operation.dtype, figures);
    if (!made_by_amd_) {
      const double slower = slower_by_pieces(*product, operation.dtype, figures, seen);
      added_us += (slower - 1) * std::max(time.time.value() - figures.kernel_floor_us, 0.0);
    }
  }
  if (made_by_amd_ && std::holds_alternative<AttentionShape>(operation.shape)) factor = 1 / kAmdAttention;
  // A measured reduction has its partial sums.
  if (std::holds_alternative<ReductionShape>(operation.shape) && !priced.record.starts_with("reduction/"))
    added_us += kReductionUs;
  // A measured cast to a wider type is one.
  if (!made_by_amd_ && std::holds_alternative<ElementwiseShape>(operation.shape) &&
      !priced.record.starts_with("cast_widening/")) {
    const double slower = seen.has(KernelImplementation::strided)       ? kStrided
                          : seen.has(KernelImplementation::mixed_types) ? kMixedTypes
                                                                        : 1;
    added_us += (slower - 1) * std::max(time.time.value() - figures.kernel_floor_us, 0.0);
  }
  if (made_by_amd_ &&
      (seen.has(KernelImplementation::pooling_forward) || seen.has(KernelImplementation::strided))) {
    factor = 1 / kAmdIrregular;
  }
  if (const auto* norm = std::get_if<NormShape>(&operation.shape);
      norm != nullptr && !timed_by_events && seen.has(KernelImplementation::channel_statistics)) {
    const double waves = std::ceil(static_cast<double>(norm->rows) / (2 * figures.sm_count));
    const double passes = operation.direction == Direction::forward ? 1 : kStatisticsPassesBackward;
    added_us = passes * waves * static_cast<double>(norm->cols) / kElementsPerUsOfBlock;
  }
  if (!timed_by_events && std::holds_alternative<ElementwiseShape>(operation.shape))
    added_us += figures.element_start_us - figures.kernel_floor_us;
  if (std::holds_alternative<ElementwiseShape>(operation.shape) && !made_by_amd_) {
    added_us -= std::min(saved_by_cache_us(work_of(operation).bytes().value(), figures),
                         std::max(time.time.value() - figures.kernel_floor_us, 0.0));
  }
  for (Microseconds* edge : {&time.time, &time.p10, &time.p90})
    *edge = Microseconds{std::max(edge->value() * factor + added_us, 0.5 * figures.kernel_floor_us)};
  return time;
}

double shortest_kernel_us(const Operation* operation, KernelImplementation seen,
                          const DeviceFigures& device) {
  const bool by_element = operation != nullptr && std::holds_alternative<ElementwiseShape>(operation->shape);
  const double over_floor = shortest_over_floor(operation, seen);
  return by_element && over_floor == 1 ? device.element_start_us : device.kernel_floor_us * over_floor;
}

double convolution_us(const ConvolutionShape& shape, DType dtype, Direction direction,
                      const DeviceFigures& device, const SeenKernels& seen, bool made_by_amd) {
  return Convolution{shape, dtype, device, seen, made_by_amd}.us(direction);
}

// Convolutions on matrix units want channels last: cuDNN copies inputs and results (VGG-13 on an H100), MIOpen weights,
// too (ResNet-18 on an MI300X). On AMD's GPUs 16-bit batch norm is PyTorch's own. Windows are pooled by its own kernels
// everywhere: what is known by its amounts and counts as a reduction.
namespace {

struct LayoutCopies {
  int to_last = 0, to_first = 0;
};

// Copies that cuDNN makes of tensors with the pixels of a channel next to each other, since its kernels for matrix units want the channels
// of a pixel so. A convolution of one tap and stride 1 is a matrix product of the tensors as they are, where the pixels of a channel
// come in pieces that a kernel can load: asynchronously of at least 4 bytes, and whole ones where the sum goes over pixels. Weights of
// one tap are the same in both layouts. Of the copies of a ResNet-50 (its trace on an H100) forward 42 and 25 of 43 and 26,
// backward 114 and 41 of 115 and 42.
LayoutCopies layout_copies(const ConvolutionShape& shape, double element, Direction direction) {
  const bool one_tap = shape.kernel_height == 1 && shape.kernel_width == 1;
  const double row_bytes = as_double(shape.out_height()) * as_double(shape.out_width()) * element;
  const auto as_it_is = [&](double piece) {
    return one_tap && shape.stride == 1 && shape.padding == 0 && std::fmod(row_bytes, piece) == 0;
  };
  const int weight = one_tap ? 0 : 1;
  LayoutCopies copies;
  if (direction != Direction::weight_gradient && !as_it_is(kAsynchronousCopyBytes)) copies = {1 + weight, 1};
  const bool of_weights = direction == Direction::backward || direction == Direction::weight_gradient;
  if (of_weights && !as_it_is(kPieceBytes)) {
    copies.to_last += 2;
    copies.to_first += weight;
  }
  return copies;
}

}  // namespace

SeenKernels usual_kernels(const Operation& operation, bool made_by_amd, bool matrix_units) {
  SeenKernels usual;
  const bool forward = operation.direction == Direction::forward;
  const auto has = [&usual](KernelImplementation implementation, double count) {
    usual.count[static_cast<std::size_t>(implementation)] = count;
    usual.times = 1;
  };
  if (const auto* convolution = std::get_if<ConvolutionShape>(&operation.shape);
      convolution != nullptr && matrix_units) {
    if (made_by_amd) {
      has(Seen::layout_transpose, forward ? 3 : operation.direction == Direction::backward ? 6 : 3);
    } else {
      const LayoutCopies copies =
          layout_copies(*convolution, element_size(operation.dtype).value(), operation.direction);
      has(Seen::to_channels_last, copies.to_last);
      has(Seen::to_channels_first, copies.to_first);
    }
  }
  if (const auto* norm = std::get_if<NormShape>(&operation.shape);
      norm != nullptr && norm->kind == NormKind::batch_norm && made_by_amd &&
      (operation.dtype == DType::bf16 || operation.dtype == DType::fp16)) {
    has(Seen::channel_statistics, 1);
  }
  if (const auto* amount = std::get_if<AmountShape>(&operation.shape);
      amount != nullptr && amount->kernel_class == KernelClass::reduction) {
    has(forward ? Seen::pooling_forward : Seen::pooling_backward, 1);
  }
  return usual;
}

}  // namespace stepcast
