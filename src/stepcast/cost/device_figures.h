// Figures of a device in the form that time models use. Rates are per microsecond. A documented guess
// replaces every figure that the platform file leaves out.
#pragma once

#include <array>
#include <cstddef>

#include "stepcast/operation/dtype.h"
#include "stepcast/platform/platform.h"

namespace stepcast {

// A rate, and whether it is a guess.
struct Rate {
  double per_us = 0;     // FLOPs or bytes per microsecond
  bool assumed = false;  // the platform file does not state it
};

struct DeviceFigures {
  std::array<Rate, kDTypeCount> matrix;          // dense GEMM of operands of this type, on the fastest unit
  std::array<bool, kDTypeCount> matrix_units{};  // whether these have tensor cores or similar units
  Rate vector;                                   // all other arithmetic; half types are computed in fp32
  Rate memory;                                   // bytes
  Rate l2;                                       // bytes
  Rate host_link;                                // bytes, one direction
  double sm_count = 1;                           // streaming multiprocessors (compute units)
  double l2_bytes = 0;                           // size of the last-level cache
  double kernel_floor_us = 0;                    // duration of the shortest kernel
  double element_start_us = 0;                   // the same for element-wise kernels in a step
  // FLOPs per microsecond that the power limit sustains in long runs: on matrix units, and in fp32 GEMM by
  // ordinary arithmetic.
  double sustained_matrix_per_us = 0, sustained_vector_per_us = 0;

  [[nodiscard]] const Rate& matrix_of(DType dtype) const { return matrix[static_cast<std::size_t>(dtype)]; }
  [[nodiscard]] bool has_matrix_units(DType dtype) const {
    return matrix_units[static_cast<std::size_t>(dtype)];
  }
};

// The figures of a device; never fails, since every figure has a fallback.
[[nodiscard]] DeviceFigures figures_of(const Device& device);

}  // namespace stepcast
