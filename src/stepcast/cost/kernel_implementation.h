// The implementation of a kernel, derived from its name in a trace, as far as it decides the duration.
//
//   implementation_of("volta_scudnn_winograd_128x128_ldg1_ldg4_relu_tile148t_nt_v1")   winograd_fused
//
// An Operation says what is computed. Libraries compute it in ways that differ by factors: a 3x3 convolution
// through Winograd transforms takes half the multiplications, a reduction with one block per channel leaves
// most of a GPU idle. Since traces name the kernels, the choice of the library need not be guessed.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace stepcast {

enum class KernelImplementation : std::uint8_t {
  other,
  strided,             // element-wise on non-contiguous tensors
  mixed_types,         // element-wise on tensors of several types, one element at a time
  concatenation,       // many inputs, listed in memory
  indexing,            // index tensors of several dimensions, offsets computed per element
  row_gather,          // rows of one table, one per index
  sorting,             // several passes that depend on each other
  selection,           // top-k in a block
  pooling_forward,     // windows of an image
  pooling_backward,    // every input searches the windows that selected it
  channel_statistics,  // batch norm with one block per channel
  pieces_of_one,       // CUTLASS GEMMs that load operands element by element ("align1")
  pieces_of_two,       // or two elements at once ("align2")
  // From here to the end: choices of convolution libraries.
  to_channels_last,  // layout copies around convolutions
  to_channels_first,
  layout_transpose,  // a layout copy, direction not named
  winograd_fused,    // transforms and GEMMs in one kernel, tiles of 2x2 outputs
  winograd,          // transforms through memory, tiles of 4x4 outputs
  winograd_weight_gradient,
  plain_convolution,  // implicit GEMM without tuned code, or with an unfolded input
  plain_data_gradient,
  plain_weight_gradient,
  tuned_convolution,  // hand-scheduled implicit GEMM: cuDNN's assembly, xmma, CUTLASS, MIOpen
  tuned_data_gradient,
  tuned_weight_gradient,
};
inline constexpr std::size_t kKernelImplementationCount =
    static_cast<std::size_t>(KernelImplementation::tuned_weight_gradient) + 1;

// The implementation by name, case-insensitive; `other` for unknown names.
[[nodiscard]] KernelImplementation implementation_of(std::string_view kernel_name);

// The kernels that a trace shows for an operation, summed over its occurrences.
struct SeenKernels {
  std::array<double, kKernelImplementationCount> time_us{};  // total by implementation
  std::array<double, kKernelImplementationCount> count{};    // kernels by implementation
  double times = 0;                                          // occurrences of the operation; 0: unknown
  bool here = true;                                          // seen on a GPU like the one that is forecast

  // Adds one kernel of `us` microseconds; `share` of an occurrence of the operation.
  void add(KernelImplementation implementation, double us, double share) {
    time_us[static_cast<std::size_t>(implementation)] += us;
    count[static_cast<std::size_t>(implementation)] += 1;
    times += share;
  }
  // Without the choices of convolution libraries, for forecasts on another GPU, where the library chooses
  // again. Kernels of the framework are the same everywhere.
  [[nodiscard]] SeenKernels without_convolutions() const {
    SeenKernels out = *this;
    out.times = 0;
    out.here = false;
    for (auto i = static_cast<std::size_t>(KernelImplementation::to_channels_last);
         i < kKernelImplementationCount; ++i) {
      out.time_us[i] = 0;
      out.count[i] = 0;
    }
    return out;
  }
  [[nodiscard]] bool has(KernelImplementation implementation) const {
    return count[static_cast<std::size_t>(implementation)] > 0;
  }
  [[nodiscard]] double us(KernelImplementation implementation) const {
    return time_us[static_cast<std::size_t>(implementation)];
  }
  // Mean number of such kernels per occurrence of the operation.
  [[nodiscard]] double per_operation(KernelImplementation implementation) const {
    return times > 0 ? count[static_cast<std::size_t>(implementation)] / times : 0;
  }
};

}  // namespace stepcast
