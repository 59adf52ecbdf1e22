#include "stepcast/cost/convolution_time.h"

#include <algorithm>
#include <cmath>

#include "stepcast/base/number.h"
#include "stepcast/cost/detail/gemm_tiles.h"

namespace stepcast {
namespace {

using Seen = KernelImplementation;

// Share of the peak of ordinary arithmetic that products reach, whatever their size as long as they fill the SMs:
// without tuned code, with it, gradients of weights (sums over all pixels, in parts), and where no kernel is named.
// Medians of the fp32 convolutions of a ResNet-50 trace on a V100.
constexpr double kPlainRate = 0.56, kTunedRate = 0.75, kWeightGradientRate = 0.6, kUsualRate = 0.66;
// Winograd: batched products between the transforms, and one kernel for all. The same trace.
constexpr double kWinogradRate = 0.75, kFusedRate = 0.61;
// Outputs of a block of such a product in either extent.
constexpr double kBlock = 64;
// Rate on matrix units relative to matrix products of the same size: MIOpen's implicit products on an MI300X reach 0.2 to 0.3 of its peak.
constexpr double kAmdRate = 0.55;
// Share of the memory bandwidth of copies from one layout into another, and of Winograd transforms.
constexpr double kLayoutCopy = 0.85, kAmdLayoutCopy = 0.5, kTransform = 0.8;
// Bytes that matrix units load of a row at once: channels are padded to them.
constexpr double kPieceBytes = 16;

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

  // Of ordinary arithmetic: the time-weighted mean of what the kernels reach.
  [[nodiscard]] double rate(Seen plain, Seen tuned, double tuned_rate) const {
    const double slow = seen.us(plain), fast = seen.us(tuned);
    return slow + fast > 0 ? (slow * kPlainRate + fast * tuned_rate) / (slow + fast) : kUsualRate;
  }
  // A product in ordinary arithmetic at a share of the peak, or of the SMs that its blocks fill.
  [[nodiscard]] double ordinary_us(const detail::Product& p, double share, bool splits) const {
    const double blocks = p.batch * std::ceil(p.m / kBlock) * std::ceil(p.n / kBlock);
    const double filled = splits ? 1 : std::min(1.0, blocks / device.sm_count);
    return 2 * p.batch * p.m * p.n * p.k / (device.matrix_of(dtype).per_us * share * filled);
  }

  [[nodiscard]] double direct_us(Direction pass) const {
    double channels = as_double(shape.in_channels) / groups;
    if (units) {
      const double piece = kPieceBytes / element;
      channels = std::ceil(channels / piece) * piece;
    }
    const double taps = as_double(shape.kernel_height) * as_double(shape.kernel_width);
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
    detail::Tiling tiling = best_tiling(p, device);
    if (amd) tiling.compute_us /= kAmdRate;
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
    if (unknown && !units) {
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

  // Copies of activations between layouts. Weights are small beside them.
  [[nodiscard]] double layout_us(Direction direction) const {
    const double either = seen.per_operation(Seen::layout_transpose);
    const double in = seen.per_operation(Seen::to_channels_last);
    const double back = seen.per_operation(Seen::to_channels_first);
    if (either + in + back <= 0) return 0;
    double bytes = 0;
    if (direction == Direction::forward) {
      if (in > 0 || either > 0) bytes += input_bytes;
      if (back > 0 || either >= 2) bytes += output_bytes;
    } else {
      if (in > 0 || either > 0) bytes += output_bytes;
      if (in >= 2 || either >= 2) bytes += input_bytes;
      if (direction == Direction::backward && (back > 0 || either >= 3)) bytes += input_bytes;
      if (direction == Direction::backward && either >= 4) bytes += output_bytes;
    }
    return memory_us(2 * bytes, amd ? kAmdLayoutCopy : kLayoutCopy) +
           (either + in + back) * device.kernel_floor_us;
  }

  [[nodiscard]] double us(Direction direction) const {
    if (direction == Direction::backward && weights_alone()) direction = Direction::weight_gradient;
    double time = layout_us(direction);
    if (direction != Direction::backward) return time + pass_us(direction);
    return time + pass_us(Direction::input_gradient) + pass_us(Direction::weight_gradient);
  }
};

}  // namespace

double convolution_us(const ConvolutionShape& shape, DType dtype, Direction direction,
                      const DeviceFigures& device, const SeenKernels& seen, bool made_by_amd) {
  return Convolution{shape, dtype, device, seen, made_by_amd}.us(direction);
}

}  // namespace stepcast
