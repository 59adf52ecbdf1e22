// Building blocks of the costs of shapes: efficiencies, amounts, and writers of features.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>

#include "stepcast/cost/device_figures.h"
#include "stepcast/cost/families/kernel_features.h"
#include "stepcast/cost/families/reference_time.h"
#include "stepcast/operation/operation.h"

namespace stepcast::detail {

// Primary template without definition; see shape_cost.h.
template <class Shape>
struct ShapeCost;

// Shares of the peak memory bandwidth that large inputs reach, as compulsory bytes over time. From
// operators_fwd_bwd_a100_80gb.csv (A) and operators_fwd_bwd_gh200.csv (G), medians of the largest 30 % of the
// rows, except where stated; docs/constants.md has the list.
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
  static constexpr double concatenate = 0.79;               // share in the published method
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

constexpr double as_double(std::int64_t value) { return static_cast<double>(value); }
// An extent as a double, at least 1, so that logarithms and quotients are defined.
constexpr double at_least_one(std::int64_t extent) {
  return static_cast<double>(std::max<std::int64_t>(extent, 1));
}

// Bytes per microsecond that the CPUs of a node read and write in their memory for each of its GPUs. Two
// sockets of eight DDR4-3200 channels have 410 GB/s for eight GPUs, and 85 % are reached; but at least
// 85 % of the link between host and device, which newer hosts and those of a GH200 exceed. A single active
// GPU may use the memory of all eight (kMostHostMemory). Assumed.
inline constexpr double kHostMemory = 44e3, kHostMemoryOverLink = 0.85, kMostHostMemory = 8;

inline double host_memory_per_us(const DeviceFigures& device) {
  return std::max(kHostMemory, kHostMemoryOverLink * device.host_link.per_us);
}

// A kernel with a closed-form time.
struct PlainKernel {
  const DeviceFigures& device;
  DType dtype;
  Direction direction;
  const Work work;
  double element = element_size(dtype).value() > 0 ? element_size(dtype).value() : 1.0;  // bytes, at least 1

  [[nodiscard]] bool forward() const { return direction == Direction::forward; }

  // Time of the bytes at a share of the memory bandwidth, or of ordinary arithmetic if it takes longer.
  [[nodiscard]] double streamed(double share) const {
    return std::max(work.bytes().value() / (device.memory.per_us * share),
                    work.flops.value() / device.vector.per_us);
  }
};

// Amounts of a kernel for its reference time (families/reference_time.h), filled by ShapeCost::reference().
struct ReferenceAmounts {
  ReferenceTerms& terms;
  const ReferenceParameters& device;
  Direction direction;
  double elements = 0;          // moved between memory and chip
  double flops = 0;             // of arithmetic without tiles
  double extra_bytes = 0;       // traffic in addition to the elements
  double units = 0, chain = 0;  // rows or bags, and elements of one
};

// Number of tensors of the size of the input that a pass reads and writes, at least.
constexpr double tensor_passes(Direction direction, double forward, double backward) {
  return direction == Direction::forward ? forward : backward;
}

// Inputs of generic models from a shape: the length of its rows, the inputs of its stream, or the sides of
// its GEMM (attention: tokens, tokens, head dimension).
struct GenericShape {
  std::optional<double> row_length = std::nullopt;
  std::optional<double> inputs = std::nullopt;
  bool power = false;  // raises to a power, which is expensive arithmetic
  struct Sides {
    double m = 128, n = 128, k = 256;
  } sides = {};
};

// Value of a feature that the operation does not state; models replace it by a typical value.
inline constexpr float kUnknown = std::numeric_limits<float>::quiet_NaN();

// A count of blocks; the argument is divided as integers on purpose.
inline float count_of_blocks(std::int64_t count) { return static_cast<float>(count); }

// How often two divides the extent, up to a limit: the alignment that a kernel can use.
inline float twos_in(std::int64_t extent, int most) {
  if (extent <= 0) return 0;
  return static_cast<float>(std::min(std::countr_zero(static_cast<std::uint64_t>(extent)), most));
}

// Position within a step of the hardware, 0 to below 1.
inline float position_within(std::int64_t extent, std::int64_t step) {
  return static_cast<float>(extent % step) / static_cast<float>(step);
}

// Writes features one after the other; the caller writes exactly as many as the set has.
class FeatureWriter {
 public:
  explicit FeatureWriter(std::span<float, kMostKernelFeatures> out) : out_(out) {}
  void operator()(double value) { out_[next_++] = static_cast<float>(value); }
  void operator()(float value) { out_[next_++] = value; }

 private:
  std::span<float, kMostKernelFeatures> out_;
  std::size_t next_ = 0;
};

// Two features: duration of the waves over their work (1: the last wave is full), and area of the tiles over
// the area of the matrix.
inline void write_tiles(FeatureWriter& write, double batch, std::int64_t m, std::int64_t n, std::int64_t rows,
                        std::int64_t columns, double sm_count) {
  const double row_tiles = at_least_one((m + rows - 1) / rows),
               column_tiles = at_least_one((n + columns - 1) / columns);
  const double waves = row_tiles * column_tiles * batch / sm_count;
  write(std::ceil(waves) / waves);
  write(row_tiles * static_cast<double>(rows) / at_least_one(m) * column_tiles *
        static_cast<double>(columns) / at_least_one(n));
}

// Features of KernelFeatureSet::rows.
inline void write_rows(FeatureWriter& write, std::int64_t rows, std::int64_t cols, int kind,
                       double log_reference) {
  const double log_rows = std::log(at_least_one(rows)), log_cols = std::log(at_least_one(cols));
  write(log_rows);
  write(log_cols);
  write(log_reference);
  write(log_rows + log_cols);
  write(twos_in(cols, 12));
  write(count_of_blocks((cols + 1023) / 1024));
  write(static_cast<float>(kind));
}

// Features of KernelFeatureSet::elements. `inner` 0: unknown.
inline void write_elements(FeatureWriter& write, std::int64_t elements, std::int64_t inner, double tensors,
                           int function, double flops_per_element, double log_reference) {
  const double log_elements = std::log(at_least_one(elements));
  write(log_elements);
  const double log_inner =
      inner > 0 ? std::log(at_least_one(inner)) : std::numeric_limits<double>::quiet_NaN();
  write(log_inner);
  write(log_reference);
  write(log_elements - log_inner);
  write(inner > 0 ? twos_in(inner, 12) : kUnknown);
  write(twos_in(elements, 12));
  write(tensors);
  write(static_cast<float>(function));
  write(flops_per_element);
}

}  // namespace stepcast::detail
