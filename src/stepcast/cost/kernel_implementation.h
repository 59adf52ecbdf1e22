// What the name of a recorded kernel tells about how it does its work, where that decides how long it takes.
//
//   implementation_of("volta_scudnn_winograd_128x128_ldg1_ldg4_relu_tile148t_nt_v1")   winograd_fused
//
// An Operation says what is done; libraries do it in ways that differ by factors: a 3x3 convolution through
// Winograd transforms takes half the multiplications, a reduction with one block per channel leaves most of a
// GPU idle. Traces name the kernels, so that nothing has to be guessed about the choice of the library.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace stepcast {

enum class KernelImplementation : std::uint8_t {
  other,
  strided,             // element-wise on tensors that are not contiguous
  mixed_types,         // element-wise on tensors of several types, one element at a time
  concatenation,       // many inputs, described in memory
  indexing,            // index tensors of several dimensions, offsets computed per element
  row_gather,          // rows of one table, one for each index
  sorting,             // several passes that depend on each other
  selection,           // top-k in a block
  pooling_forward,     // windows of an image
  pooling_backward,    // every input looks for the windows that chose it
  channel_statistics,  // batch norm with one block per channel
  pieces_of_one,       // products of CUTLASS that load their operands element by element ("align1"),
  pieces_of_two,       // or two at once
  // What libraries of convolutions choose, to the end of the list.
  to_channels_last,  // copies around convolutions that want another layout
  to_channels_first,
  layout_transpose,  // the same, the name does not say which way
  winograd_fused,    // transforms and products in one kernel, tiles of 2x2 outputs
  winograd,          // transforms through memory, tiles of 4x4 outputs
  winograd_weight_gradient,
  plain_convolution,  // implicit products without tuned code, or through an unfolded input
  plain_data_gradient,
  plain_weight_gradient,
  tuned_convolution,  // hand-scheduled implicit products: cuDNN's assembly, xmma, CUTLASS, MIOpen
  tuned_data_gradient,
  tuned_weight_gradient,
};
inline constexpr std::size_t kKernelImplementationCount =
    static_cast<std::size_t>(KernelImplementation::tuned_weight_gradient) + 1;

[[nodiscard]] KernelImplementation implementation_of(std::string_view kernel_name);

// The kernels that a trace shows for an operation.
struct SeenKernels {
  std::array<double, kKernelImplementationCount> time_us{};  // in total
  std::array<double, kKernelImplementationCount> count{};
  double times = 0;  // how often the operation was done; 0: not known
  bool here = true;  // on a GPU like the one that is asked for

  void add(KernelImplementation implementation, double us, double share) {
    time_us[static_cast<std::size_t>(implementation)] += us;
    count[static_cast<std::size_t>(implementation)] += 1;
    times += share;
  }
  // Without what a library of convolutions chose: on another GPU it chooses anew. Kernels of the framework are the
  // same everywhere.
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
  // Kernels of this sort each time the operation is done.
  [[nodiscard]] double per_operation(KernelImplementation implementation) const {
    return times > 0 ? count[static_cast<std::size_t>(implementation)] / times : 0;
  }
};

}  // namespace stepcast
