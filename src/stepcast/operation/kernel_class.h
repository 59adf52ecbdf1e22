// Classes of GPU work, as far as names of tasks determine them.
#pragma once

#include <cstdint>
#include <string_view>

namespace stepcast {

// The classes in which reports sum up computation.
enum class KernelClass : std::uint8_t {
  none,            // not GPU work
  gemm,            // GEMM and convolution, on tensor cores or not
  attention,       // fused attention
  embedding,       // embedding lookup and its backward, index gather and scatter
  expert_routing,  // tokens to experts and back: sorting, permutation, combination
  normalization,   // layer, RMS, batch and group norm, softmax
  elementwise,     // element-wise arithmetic, activation, dropout, optimizer kernels
  reduction,
  memory,  // copies, fills, concatenation and transposition, by kernels or by the copy engine
  communication,
  other,
};
inline constexpr int kKernelClassCount = 11;

// Direction of a copy by the copy engine.
enum class MemcpyKind : std::uint8_t {
  none,
  host_to_device,
  device_to_host,
  device_to_device,
  host_to_host,
  peer
};

// "gemm", "attention", ...: names in reports and tables.
[[nodiscard]] std::string_view to_string(KernelClass kernel_class);

// Classifies a kernel by its (demangled or mangled) name. The framework operation that launched it is a
// second hint and may be empty. `other` if neither matches.
[[nodiscard]] KernelClass classify_kernel(std::string_view kernel_name, std::string_view framework_op = {});

// The direction in "Memcpy HtoD (Pageable -> Device)" and its older and AMD spellings; `none` for other
// names.
[[nodiscard]] MemcpyKind memcpy_kind(std::string_view event_name);

}  // namespace stepcast
