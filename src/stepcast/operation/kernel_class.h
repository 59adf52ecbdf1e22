// What sort of work a GPU task is, as far as its name tells.
#pragma once

#include <cstdint>
#include <string_view>

namespace stepcast {

// The classes in which computation is reported.
enum class KernelClass : std::uint8_t {
  none,            // not GPU work
  gemm,            // matrix multiplication and convolution, by tensor cores or not
  attention,       // fused attention
  embedding,       // embedding lookup and its backward, index gather/scatter
  expert_routing,  // tokens on their way to experts and back: sorted, permuted, put together
  normalization,   // layer, RMS, batch and group norm, softmax
  elementwise,     // element-wise arithmetic, activation, dropout, optimizer kernels
  reduction,
  memory,  // copies, fills, concatenation, transposes done by kernels or by the copy engine
  communication,
  other,
};
inline constexpr int kKernelClassCount = 11;

enum class MemcpyKind : std::uint8_t {
  none,
  host_to_device,
  device_to_host,
  device_to_device,
  host_to_host,
  peer
};

[[nodiscard]] std::string_view to_string(KernelClass kernel_class);

// Classifies a kernel by its (demangled or mangled) name; launching framework operation as a second hint, may
// be empty.
[[nodiscard]] KernelClass classify_kernel(std::string_view kernel_name, std::string_view framework_op = {});

// "Memcpy HtoD (Pageable -> Device)" and its older and AMD spellings.
[[nodiscard]] MemcpyKind memcpy_kind(std::string_view event_name);

}  // namespace stepcast
