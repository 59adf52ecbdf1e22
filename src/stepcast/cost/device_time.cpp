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

// Times of kernels as a trace shows them: corrections of benchmark times, and closed forms of convolutions.

namespace stepcast {

namespace {

// Half-width of the bands of closed forms, as a factor.
constexpr double kClosedFormBand = 1.4;
// Extra time of a GEMM with operands in memory instead of the cache after a previous run: cuBLAS GEMMs of
// BERT-small and ViT traces on an H100 against records of repeated runs.
constexpr double kColdProductUs = 2;
// Time relative to vectorized kernels that move the same bytes: PyTorch's element-wise kernels on
// non-contiguous tensors, and on tensors of several types. GPT-2, BERT and Llama on our H100, kernels of 20
// us and more; tested on the H200's.
constexpr double kStrided = 1.9, kMixedTypes = 1.6;
// Two events around a kernel (how records with cold caches were timed) also include the gap before it, which
// a trace shows separately: 1.34 us on an H100 and 1.09 on an H200 (`gap_of_a_full_stream` of data/measured).
constexpr double kGapOfFullStreamUs = 1.2;
// Extra time of a reduction over a streaming kernel of equally few bytes: partial sums of a block, then of
// its warps. PyTorch's reductions of at most 64 blocks take 8.8 us on a V100 and 7.8 on an A100 where
// element-wise kernels take 2.0 and 2.1 (ns_resolution, nccl_data), 8 and 3 on the A100 of
// trace_diff_control.
constexpr double kReductionUs = 5;
// From this size on, a cache has two partitions, and data in the other partition counts as far away.
constexpr double kPartitionedCacheBytes = 20e6;
// Share of the data of an element-wise kernel, up to the size of the cache, that is cached. Assumed: its
// inputs are, and its output does not fit.
constexpr double kCachedShare = 0.5;
// Share of the memory bandwidth that the backward of max pooling reaches: each input scans the windows around
// it. 0.29 in a ResNet-50 trace on a V100 and in a VGG-13 trace on an H100.
constexpr double kPoolingBackward = 0.29;
// Rate of fused attention in PyTorch on ROCm (AOTriton's compiled kernels) relative to the closed form of
// hand-written ones: the two attentions of PyTorch in a trace of FLUX on an MI300X, 1,024 tokens of one head
// of 512 and 77 of twelve of 64.
constexpr double kAmdAttention = 0.6;
// Rows that do not start at multiples of 16 bytes are loaded in smaller pieces: GEMMs of a DLRM on an A100,
// kernels `align1` compared with `align4` of 25 us and more (trace_diff_control).
constexpr double kPieceBytes = 16, kUnaligned = 1.16;
// From Hopper on, NVIDIA's asynchronous GEMMs also need pieces of 16 bytes; without them kernels of Ampere
// run. Their relative rate: for convolutions the ratio of FlashAttention 2 to 3 (0.38 and 0.60 of the peak),
// for GEMMs the ratio at the head of BERT on an H100 (30,522 words, 240 TFLOP/s each way, where aligned GEMMs
// are priced at 610 to 690). The peak from which a device has asynchronous GEMMs is the same as in
// detail/attention_blocks.cpp.
constexpr double kAsynchronousPerUs = 600e6, kWithoutAsynchronous = 0.63, kProductWithoutAsynchronous = 0.42;
// Pieces below 4 bytes are copied through registers, by kernels of Turing: the head of GPT-2 (50,257 words)
// on an H100, 95 to 147 TFLOP/s each way.
constexpr double kAsynchronousCopyBytes = 4, kThroughRegisters = 1.9;
// Rate of ROCm's kernels with computed offsets relative to CUDA's: strided element-wise kernels of Flux and
// pooling of ResNet-18 on an MI300X.
constexpr double kAmdIrregular = 0.4;
// Batch norm with one block per channel: elements of a channel per microsecond, and passes over them in the
// backward. ResNet-18 on an MI300X, 64 channels.
constexpr double kElementsPerUsOfBlock = 2500, kStatisticsPassesBackward = 3.5;

// Shortest kernels of some kinds relative to the shortest kernel of the device: medians of kernels on less
// than 200 kB in recorded traces of A100, H100, B300 and MI300X. Reductions take two phases in a block,
// gathers and scatters a chain of dependent loads, sorting several passes.
constexpr double kShortestReduction = 2.3, kShortestGather = 2, kShortestIndexing = 3.6, kShortestSort = 4.4,
                 kShortestSelection = 2.8, kShortestConcatenation = 1.6;

using Seen = KernelImplementation;

// Ratio of the shortest kernel of this kind to the kernel floor. `operation` may be null; 1 for all other
// kinds.
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

// Share of the peak of ordinary arithmetic that convolutions reach once they fill the SMs, at any size:
// without tuned code, with it, gradients of weights (sums over all pixels, split), and where no kernel is
// named. Medians of the fp32 convolutions of a ResNet-50 trace on a V100.
constexpr double kPlainRate = 0.56, kTunedRate = 0.75, kWeightGradientRate = 0.6, kUsualRate = 0.66;
// The same on GPUs with 128 fp32 lanes per SM (H100 and later), which also have TF32 units for these tensors:
// ideal over measured time of 77 fp32 convolutions of 60 us and more on an H200 (data/measured); 0.43 on an
// H100, too. None of them is a Winograd.
constexpr double kWideRate = 0.44, kWidePerUs = 3e7;
// Winograd: batched GEMMs between the transforms, and the fused kernel. The same trace.
constexpr double kWinogradRate = 0.75, kFusedRate = 0.61;
// Outputs of a block of such a GEMM in either extent.
constexpr double kBlock = 64;
// Rate on matrix units relative to plain GEMMs of the same size: MIOpen's implicit GEMMs on an MI300X reach
// 0.2 to 0.3 of its peak.
constexpr double kAmdRate = 0.55;
// Share of the memory bandwidth of copies between layouts (NVIDIA, AMD), and of Winograd transforms.
constexpr double kLayoutCopy = 0.85, kAmdLayoutCopy = 0.5, kTransform = 0.8;
// A layout copy works on whole pieces of 32 channels and 32 pixels; elements that an SM moves per
// microsecond: cuDNN's nchwToNhwc of inputs and weights, 3 to 320 channels, 1 to 1,024 pixels or taps, on an
// H100.
constexpr double kTransposed = 32, kTransposedPerUsOfSm = 5500;
// Channels of one tap in a step of CUTLASS's implicit GEMMs, in bytes; fewer channels are padded ("32x4" and
// "16x4" in names of bf16 and tf32 kernels, `fprop_optimized`).
constexpr double kStepBytes = 64;

// Share of the matrix-unit rate that an NVIDIA library reaches where operands are not aligned to 16 bytes; 1
// before Hopper.
double share_without_pieces(DType dtype, const DeviceFigures& device, double share = kWithoutAsynchronous) {
  return device.matrix_of(dtype).per_us >= kAsynchronousPerUs ? share : 1;
}

// Time of an NVIDIA GEMM relative to the same GEMM with operands aligned to 16 bytes. The alignment comes
// from the kernel names, or else from the extents that are known to be contiguous (n and k).
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

// One convolution and its device; members compute times in us of its passes.
struct Convolution {
  const ConvolutionShape& shape;
  DType dtype;
  const DeviceFigures& device;
  const SeenKernels& seen;
  bool amd;
  double element = std::max(element_size(dtype).value(), 1.0);  // bytes
  double groups = as_double(std::max<std::int64_t>(shape.groups, 1));
  double pixels = as_double(shape.out_height()) * as_double(shape.out_width());
  double input_bytes = as_double(shape.batch) * as_double(shape.in_channels) * as_double(shape.height) *
                       as_double(shape.width) * element;
  double output_bytes = as_double(shape.batch) * as_double(shape.out_channels) * pixels * element;
  double weight_bytes = as_double(shape.out_channels) * as_double(shape.in_channels) / groups *
                        as_double(shape.kernel_height) * as_double(shape.kernel_width) * element;
  bool units = device.has_matrix_units(dtype);  // the device has matrix units for the dtype

  // Time of `bytes` at a share of the memory bandwidth.
  [[nodiscard]] double memory_us(double bytes, double share) const {
    return bytes / (device.memory.per_us * share);
  }

  // Whether the GPU has 128 fp32 lanes per SM; see kWideRate.
  [[nodiscard]] bool wide() const {
    return device.has_matrix_units(DType::tf32) && device.matrix_of(dtype).per_us >= kWidePerUs;
  }
  // Share of the peak for ordinary arithmetic: the time-weighted mean over the kernels seen, else the usual
  // share.
  [[nodiscard]] double rate(Seen plain, Seen tuned, double tuned_rate) const {
    const double slow = seen.us(plain), fast = seen.us(tuned);
    if (slow + fast > 0) return (slow * kPlainRate + fast * tuned_rate) / (slow + fast);
    return wide() ? kWideRate : kUsualRate;
  }
  // A GEMM in ordinary arithmetic at a share of the peak, reduced where its blocks do not fill all SMs.
  // `splits`: the sum is split over blocks, so that all SMs are filled.
  [[nodiscard]] double ordinary_us(const detail::Product& p, double share, bool splits) const {
    const double blocks = p.batch * std::ceil(p.m / kBlock) * std::ceil(p.n / kBlock);
    const double filled = splits ? 1 : std::min(1.0, blocks / device.sm_count);
    return 2 * p.batch * p.m * p.n * p.k / (device.matrix_of(dtype).per_us * share * filled);
  }

  // Implicit GEMM. Few channels (below kStepBytes per tap) are padded to a whole step of CUTLASS's kernels.
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
    // The unfolded input is never written to memory.
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

  // Number of tiles of size x size outputs over the whole batch.
  [[nodiscard]] double tiles(double size) const {
    return as_double(shape.batch) * std::ceil(as_double(shape.out_height()) / size) *
           std::ceil(as_double(shape.out_width()) / size);
  }
  [[nodiscard]] double product_us(double batch, double m, double n, double k) const {
    return ordinary_us({batch, m, n, k, dtype, element, element}, kWinogradRate, false);
  }

  // Unfused Winograd: three transforms through memory, 36 batched GEMMs, four launches.
  [[nodiscard]] double winograd_us(Direction pass) const {
    const double in = as_double(shape.in_channels), out = as_double(shape.out_channels), t = tiles(4);
    const double transformed = 36 * element * (t * in + t * out + in * out);
    const double products = pass == Direction::weight_gradient  ? product_us(36, in, out, t)
                            : pass == Direction::input_gradient ? product_us(36, t, in, out)
                                                                : product_us(36, t, out, in);
    return products + memory_us(transformed + input_bytes + output_bytes + weight_bytes, kTransform) +
           4 * device.kernel_floor_us;
  }
  // Winograd with transforms and GEMMs in one kernel; two launches.
  [[nodiscard]] double fused_winograd_us() const {
    const double multiplications =
        16 * tiles(2) * as_double(shape.in_channels) * as_double(shape.out_channels);
    return std::max(2 * multiplications / (device.matrix_of(dtype).per_us * kFusedRate),
                    memory_us(input_bytes + output_bytes + weight_bytes, kTransform)) +
           2 * device.kernel_floor_us;
  }

  // Whether Winograd is possible: 3x3, stride 1, no dilation, one group.
  [[nodiscard]] bool transforms_apply() const {
    return shape.kernel_height == 3 && shape.kernel_width == 3 && shape.stride == 1 && shape.dilation == 1 &&
           shape.groups <= 1;
  }
  [[nodiscard]] bool seen_any(std::initializer_list<Seen> of) const {
    return std::ranges::any_of(of, [&](Seen s) { return seen.has(s); });
  }

  // One pass by the algorithm that was seen. With none seen, the fastest applicable one on GPUs without
  // matrix units, else direct.
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

  // The first layer of a network needs no input gradient. Old traces do not record this, but their kernels
  // show it.
  [[nodiscard]] bool weights_alone() const {
    const bool weights =
        seen_any({Seen::winograd_weight_gradient, Seen::plain_weight_gradient, Seen::tuned_weight_gradient});
    const bool others =
        seen_any({Seen::winograd, Seen::winograd_fused, Seen::plain_convolution, Seen::plain_data_gradient,
                  Seen::tuned_convolution, Seen::tuned_data_gradient});
    return weights && !others;
  }

  // One copy of a [batch, channels, pixels] tensor into another layout. NVIDIA's kernels move whole pieces of
  // 32 x 32.
  [[nodiscard]] double layout_copy_us(double batch, double channels, double across) const {
    const double streamed_us =
        memory_us(2 * batch * channels * across * element, amd ? kAmdLayoutCopy : kLayoutCopy);
    const auto whole = [](double extent) { return std::ceil(extent / kTransposed) * kTransposed; };
    const double moved_us =
        amd ? 0 : batch * whole(channels) * whole(across) / (device.sm_count * kTransposedPerUsOfSm);
    return std::max(streamed_us, moved_us) + device.kernel_floor_us;
  }
  // Time of the layout copies that were seen per call of the operation. The seen copies are assigned to
  // tensors in the order in which a library needs them.
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
      default:  // both gradients, one after the other: each copies the output's gradient
        return first(Seen::to_channels_last, {output_us, input_us, output_us, weight_us}) +
               first(Seen::to_channels_first, {input_us, weight_us}) + transposed_us;
    }
  }

  // All passes of a direction, with layout copies.
  [[nodiscard]] double us(Direction direction) const {
    if (direction == Direction::backward && weights_alone()) direction = Direction::weight_gradient;
    double time = layout_us(direction);
    if (direction != Direction::backward) return time + pass_us(direction);
    return time + pass_us(Direction::input_gradient) + pass_us(Direction::weight_gradient);
  }
};

// Benchmark tables repeat one GEMM, so its operands are cached; in a step the weights were last used a step
// ago. Returns the time to load them from memory; 0 where the operands exceed the cache.
double cold_weights_us(const GemmShape& product, DType dtype, const DeviceFigures& device) {
  const double element = element_size(dtype).value();
  const double m = as_double(product.m), n = as_double(product.n), k = as_double(product.k);
  const double all = as_double(product.batch) * (m * k + k * n + m * n) * element;
  return all < device.l2_bytes ? k * n * element / device.memory.per_us : 0;
}

// Time saved because inputs are still in the cache from the previous kernel.
double saved_by_cache_us(double bytes, const DeviceFigures& device) {
  const double cache = device.l2_bytes > kPartitionedCacheBytes ? device.l2_bytes / 2 : device.l2_bytes;
  return kCachedShare * std::min(bytes, cache) *
         (1 / device.memory.per_us - 1 / std::max(device.l2.per_us, device.memory.per_us));
}

// Closed forms for kernels that were identified by name; they replace any measured record. None: the
// operation is priced as usual.
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
  // A record of measured reductions already includes the partial sums.
  if (std::holds_alternative<ReductionShape>(operation.shape) && !priced.record.starts_with("reduction/"))
    added_us += kReductionUs;
  // A record of measured widening casts already includes the cost of mixed types.
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
  // Corrections apply to the time and both ends of the band; at least half of the kernel floor remains.
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

namespace {

// Number of layout copies of one convolution, to channels-last and to channels-first.
struct LayoutCopies {
  int to_last = 0, to_first = 0;
};

// Copies that cuDNN makes of channels-first tensors, since its kernels for matrix units need channels-last. A
// convolution with one tap and stride 1 is a GEMM of the tensors without a copy, if a kernel can load the
// rows of pixels: in pieces of at least 4 bytes (asynchronous copies), and of 16 bytes where the sum is over
// pixels. Weights of one tap are equal in both layouts. Of the copies of a ResNet-50 (its trace on an H100),
// this predicts forward 42 and 25 of 43 and 26, backward 114 and 41 of 115 and 42.
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
  // Convolutions on matrix units want channels-last: cuDNN copies inputs and results (VGG-13 on an H100),
  // MIOpen also weights (ResNet-18 on an MI300X).
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
  // On AMD's GPUs 16-bit batch norm uses kernels of PyTorch.
  if (const auto* norm = std::get_if<NormShape>(&operation.shape);
      norm != nullptr && norm->kind == NormKind::batch_norm && made_by_amd &&
      (operation.dtype == DType::bf16 || operation.dtype == DType::fp16)) {
    has(Seen::channel_statistics, 1);
  }
  // Pooling always uses kernels of PyTorch. It is known only by its amounts and has the class reduction.
  if (const auto* amount = std::get_if<AmountShape>(&operation.shape);
      amount != nullptr && amount->kernel_class == KernelClass::reduction) {
    has(forward ? Seen::pooling_forward : Seen::pooling_backward, 1);
  }
  return usual;
}

}  // namespace stepcast
