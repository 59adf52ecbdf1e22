#include "stepcast/cost/analytic_model.h"

#include <algorithm>
#include <cmath>
#include <variant>

#include "stepcast/cost/detail/attention_blocks.h"
#include "stepcast/cost/detail/embedding_lookup.h"
#include "stepcast/cost/detail/gemm_tiles.h"
#include "stepcast/cost/sparse_reuse.h"

namespace stepcast {
namespace {

// Shares of the peak memory bandwidth that large inputs reach, as compulsory bytes over time. From
// operators_fwd_bwd_a100_80gb.csv (A) and operators_fwd_bwd_gh200.csv (G), medians of the largest 30 % of the
// rows, where not said otherwise; docs/constants.md has the list.
struct Efficiency {
  static constexpr double elementwise = 0.87;     // res_add: A 0.86, G 0.91
  static constexpr double gelu = 0.67;            // A 0.72, G 0.62
  static constexpr double gelu_backward = 0.75;   // A 0.79, G 0.71
  static constexpr double norm = 0.57;            // layernorm: A 0.54, G 0.59
  static constexpr double norm_backward = 0.45;   // A 0.25 (older kernels), G 0.57
  static constexpr double softmax_half = 0.40;    // softmax fp16: A 0.41, G 0.35; backward 0.41, 0.37
  static constexpr double softmax = 0.60;         // assumed for 4-byte types
  static constexpr double masked_softmax = 0.60;  // A 0.62, G 0.57
  static constexpr double masked_softmax_backward = 0.52;   // A 0.57, G 0.46
  static constexpr double cross_entropy = 0.5;              // assumed
  static constexpr double reduction = 0.8;                  // assumed
  static constexpr double copy = 0.82;                      // assumed
  static constexpr double concatenate = 0.79;               // share that the published method uses
  static constexpr double transpose = 0.6;                  // assumed
  static constexpr double gather = 0.6;                     // assumed
  static constexpr double scatter = 0.4;                    // assumed: atomics
  static constexpr double optimizer = 0.6;                  // fused Adam of a pipeline stage: A 0.61
  static constexpr double norm_unfused = 0.35;              // RMSlayernorm: A 0.39, G 0.30
  static constexpr double norm_unfused_backward = 0.26;     // A 0.27, G 0.25
  static constexpr double rotary_unfused = 0.065;           // RoPE: A 0.085, G 0.049, of one pass
  static constexpr double rotary_unfused_backward = 0.035;  // A 0.036, G 0.034
  static constexpr double masked_fill = 0.49;               // fillmask: A 0.51, G 0.46: a copy, then the fill
  static constexpr double sparse = 0.4;                     // assumed: irregular rows
  static constexpr double amounts = 0.8;                    // assumed
  static constexpr double amounts_matrix = 0.7;             // of the matrix peak; assumed
  static constexpr double pinned_copy = 0.8;                // of the host link; assumed
  static constexpr double pageable_copy = 0.35;             // assumed: through a bounce buffer
};

// Winograd transforms save 2.25 of the multiplications of 3x3 convolutions with stride 1, and cost some of
// it; neusight_train_conv_fp32.csv: median 1.0 to 1.2 of the direct FLOPs at peak.
constexpr double kWinogradGain = 1.45;

constexpr double kCacheShare = 2;  // of the last-level cache: inputs left by an earlier run, outputs not
                                   // yet written; generous, for the bound
constexpr double kOnChipOverMemory = 10;  // bandwidth of what stays on chip, for the bound: generous
constexpr double kForEver = 1e300;        // of sizes whose arithmetic overflows
constexpr double kShortestKernelUs = 1;   // assumed; the shortest measured row is 2.0 us

double number(std::int64_t value) { return static_cast<double>(value); }

// Bytes per microsecond that the CPUs of a node read and write in their memory for each of its GPUs: two sockets of eight
// DDR4-3200 channels are 410 GB/s, of which 85 % are reached, for eight GPUs; not less than 85 % of the link between host
// and device, which newer hosts and those of a GH200 exceed. A GPU alone may have the memory of all. Assumed.
constexpr double kHostMemory = 44e3, kHostMemoryOverLink = 0.85, kMostHostMemory = 8;

double host_memory_per_us(const DeviceFigures& device) {
  return std::max(kHostMemory, kHostMemoryOverLink * device.host_link.per_us);
}

struct PlainTime {
  const DeviceFigures& device;
  DType dtype;
  Direction direction;
  const Work work;
  double element = element_size(dtype).value() > 0 ? element_size(dtype).value() : 1.0;

  [[nodiscard]] bool forward() const { return direction == Direction::forward; }

  // Bytes at a share of the memory bandwidth, or ordinary arithmetic if that takes longer.
  [[nodiscard]] double streamed(double share) const {
    return std::max(work.bytes().value() / (device.memory.per_us * share),
                    work.flops.value() / device.vector.per_us);
  }

  double operator()(const GemmShape& s) const {
    detail::Product p{number(s.batch), number(s.m), number(s.n), number(s.k),
                      dtype,           element,     element,     s.accumulates};
    if (s.output != DType::unknown) p.result_bytes = element_size(s.output).value();
    if (forward()) return best_tiling(p, device).time_us();
    double time = 0;
    if (direction != Direction::weight_gradient) {
      detail::Product dx = p;
      dx.n = p.k, dx.k = p.n, dx.result_bytes = element, dx.accumulates = false;
      time += best_tiling(dx, device).time_us();
    }
    if (direction != Direction::input_gradient) {
      detail::Product dw = p;
      dw.m = p.k, dw.k = p.m;
      time += best_tiling(dw, device).time_us();
      if (s.bias)
        time += p.batch * p.m * p.n * element / (device.memory.per_us * Efficiency::reduction) +
                device.kernel_floor_us;
    }
    if (direction == Direction::backward) time += device.kernel_floor_us;
    return time;
  }

  double operator()(const AttentionShape& s) const {
    return detail::attention_us(s, dtype, direction, work, device);
  }

  double operator()(const ConvolutionShape& s) const {
    const double groups = number(std::max<std::int64_t>(s.groups, 1));
    const detail::Product p{groups,
                            number(s.batch) * number(s.out_height()) * number(s.out_width()),
                            number(s.out_channels) / groups,
                            number(s.in_channels) / groups * number(s.kernel_height) * number(s.kernel_width),
                            dtype,
                            element,
                            element};
    const bool winograd = s.kernel_height == 3 && s.kernel_width == 3 && s.stride == 1 && s.dilation == 1 &&
                          !device.has_matrix_units(dtype);
    const auto timed = [&](const detail::Product& product) {
      detail::Tiling tiling = best_tiling(product, device);
      if (winograd) tiling.compute_us /= kWinogradGain;
      // The unfolded input is never in memory.
      tiling.memory_us = work.bytes().value() / (device.memory.per_us * Efficiency::copy);
      return tiling.time_us();
    };
    if (forward()) return timed(p);
    double time = 0;
    detail::Product dx = p, dw = p;
    dx.n = p.k, dx.k = p.n;
    dw.m = p.k, dw.k = p.m;
    if (direction != Direction::weight_gradient) time += timed(dx);
    if (direction != Direction::input_gradient) time += timed(dw);
    if (direction == Direction::backward) time += device.kernel_floor_us;
    return time;
  }

  double operator()(const LookupShape& s) const {
    const double heuristic = lookup_us(s, element, direction, detail::lookup_device(device));
    // A gradient that is as large as the tables has to be written as well.
    if (forward() || s.fused_update) return heuristic;
    return std::max(heuristic, work.bytes().value() / (device.memory.per_us * Efficiency::copy));
  }

  double operator()(const NormShape& s) const {
    if (!s.fused) return streamed(forward() ? Efficiency::norm_unfused : Efficiency::norm_unfused_backward);
    return streamed(forward() ? Efficiency::norm : Efficiency::norm_backward);
  }
  double operator()(const SoftmaxShape& s) const {
    if (s.kind == SoftmaxKind::causal_masked)
      return streamed(forward() ? Efficiency::masked_softmax : Efficiency::masked_softmax_backward);
    return streamed(element <= 2 ? Efficiency::softmax_half : Efficiency::softmax);
  }
  double operator()(const CrossEntropyShape&) const { return streamed(Efficiency::cross_entropy); }
  double operator()(const ElementwiseShape& s) const {
    if (s.function == ElementwiseFunction::gelu)
      return streamed(forward() ? Efficiency::gelu : Efficiency::gelu_backward);
    if (s.function == ElementwiseFunction::rotary_unfused)
      return streamed(forward() ? Efficiency::rotary_unfused : Efficiency::rotary_unfused_backward);
    if (s.function == ElementwiseFunction::masked_fill) return streamed(Efficiency::masked_fill);
    return streamed(Efficiency::elementwise);
  }
  double operator()(const MovementShape& s) const {
    switch (s.kind) {
      case MovementKind::copy:
      case MovementKind::fill: return streamed(Efficiency::copy);
      case MovementKind::transpose: return streamed(Efficiency::transpose);
      case MovementKind::concatenate:
      case MovementKind::split: return streamed(Efficiency::concatenate);
      case MovementKind::gather: return streamed(Efficiency::gather);
      case MovementKind::scatter: return streamed(Efficiency::scatter);
    }
    return streamed(Efficiency::copy);
  }
  double operator()(const ReductionShape&) const { return streamed(Efficiency::reduction); }
  double operator()(const OptimizerShape&) const { return streamed(Efficiency::optimizer); }
  double operator()(const TransferShape& s) const {
    const double bytes = number(s.bytes);
    switch (s.kind) {
      case MemcpyKind::none: return bytes / (device.memory.per_us * Efficiency::copy);
      case MemcpyKind::device_to_device: return 2 * bytes / (device.memory.per_us * Efficiency::copy);
      case MemcpyKind::host_to_host: return bytes / host_memory_per_us(device);
      default: break;
    }
    return bytes /
           (device.host_link.per_us * (s.pinned ? Efficiency::pinned_copy : Efficiency::pageable_copy));
  }
  double operator()(const SparseShape&) const { return streamed(Efficiency::sparse); }
  double operator()(const AmountShape&) const {
    if (!work.matrix) return streamed(Efficiency::amounts);
    return std::max(work.bytes().value() / (device.memory.per_us * Efficiency::amounts),
                    work.flops.value() / (device.matrix_of(dtype).per_us * Efficiency::amounts_matrix));
  }
};

// Direct multiplications over those of the transform F(4, k) in every dimension: larger tiles lose digits.
double most_saved_by_transforms(const ConvolutionShape& s) {
  if (s.stride != 1 || s.dilation != 1) return 1;
  const auto saved = [](std::int64_t k) { return 4 * number(k) / (number(k) + 3); };
  return std::max(1.0, saved(s.kernel_height)) * std::max(1.0, saved(s.kernel_width));
}

// Which figures the estimate of an operation rests on.
bool rests_on_guess(const Operation& operation, const Work& work, const DeviceFigures& device,
                    bool states_sm_count) {
  if (const auto* transfer = std::get_if<TransferShape>(&operation.shape)) {
    if (transfer->kind == MemcpyKind::host_to_host) return true;
    const bool on_device =
        transfer->kind == MemcpyKind::none || transfer->kind == MemcpyKind::device_to_device;
    return on_device ? device.memory.assumed : device.host_link.assumed;
  }
  if (device.memory.assumed) return true;
  if (work.matrix) return device.matrix_of(operation.dtype).assumed || !states_sm_count;
  return device.vector.assumed;
}

double bound_us(const Operation& operation, const Work& work, const DeviceFigures& device) {
  double flops = work.flops.value();
  double bytes = work.bytes().value();
  if (const auto* s = std::get_if<ConvolutionShape>(&operation.shape)) flops /= most_saved_by_transforms(*s);
  if (const auto* s = std::get_if<CrossEntropyShape>(&operation.shape); s != nullptr && !s->fused) {
    // What is not fused could be.
    CrossEntropyShape fused = *s;
    fused.fused = true;
    bytes = work_of({fused, operation.dtype, operation.direction}).bytes().value();
  }
  double rate = device.matrix_of(operation.dtype).per_us;
  // Half types may be computed in pairs by ordinary units: the fastest unit bounds them all.
  if (!work.matrix) rate = std::max({rate, device.vector.per_us, device.matrix_of(DType::fp16).per_us});
  const double arithmetic_us = flops / rate;
  double memory_us = std::max(bytes - kCacheShare * device.l2_bytes, 0.0) / device.memory.per_us;
  memory_us = std::max(memory_us, bytes / (device.memory.per_us * kOnChipOverMemory));
  if (const auto* transfer = std::get_if<TransferShape>(&operation.shape)) {
    const bool on_device =
        transfer->kind == MemcpyKind::none || transfer->kind == MemcpyKind::device_to_device;
    if (transfer->kind == MemcpyKind::host_to_host) {
      memory_us = number(transfer->bytes) / (kMostHostMemory * host_memory_per_us(device));
    } else if (!on_device) {
      memory_us = number(transfer->bytes) / device.host_link.per_us;
    }
  }
  const double bound = std::max({arithmetic_us, memory_us, kShortestKernelUs});
  return std::isfinite(bound) ? bound : kForEver;
}

// Half-width of the interval of unfitted answers in ln: three quarters of the products and most streaming
// kernels of the measured GPUs lie within.
constexpr double kAnalyticBand = 0.35, kAssumedBand = 0.7;

}  // namespace

AnalyticModel::AnalyticModel(const Device& device) : device_(device), figures_(figures_of(device)) {}

AnalyticTime AnalyticModel::answer(const Operation& operation) const {
  const Work work = work_of(operation);
  const double bound = bound_us(operation, work, figures_);
  const auto* sparse = std::get_if<SparseShape>(&operation.shape);
  const Work moved = sparse != nullptr ? sparse_work(operation, *sparse, figures_.l2_bytes) : work;
  const double running =
      std::visit(PlainTime{figures_, operation.dtype, operation.direction, moved}, operation.shape);
  // Products in two directions have counted the launch of the second one.
  const bool product = std::holds_alternative<GemmShape>(operation.shape) ||
                       std::holds_alternative<ConvolutionShape>(operation.shape);
  const double launches = product ? 1 : std::max(1.0, static_cast<double>(work.kernels));
  const double time = running + figures_.kernel_floor_us * launches;
  return {Microseconds{std::isfinite(time) ? std::max(time, bound) : kForEver}, Microseconds{bound}, work};
}

Microseconds AnalyticModel::time(const Operation& operation) const { return answer(operation).time; }

Microseconds AnalyticModel::lower_bound(const Operation& operation) const {
  return Microseconds{bound_us(operation, work_of(operation), figures_)};
}

Estimate AnalyticModel::estimate(const Operation& operation) const {
  const AnalyticTime a = answer(operation);
  const bool guess = rests_on_guess(operation, a.work, figures_, device_.sm_count.has_value());
  const double band = std::exp(guess ? kAssumedBand : kAnalyticBand);
  return {a.time, std::max(a.lower_bound, a.time / band), a.time * band,
          guess ? EstimateSource::assumed : EstimateSource::analytic};
}

}  // namespace stepcast
