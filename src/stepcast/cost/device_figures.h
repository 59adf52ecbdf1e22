// The figures of a device in the form that time models use: per microsecond, with a stated guess for every
// one that its platform file leaves out.
#pragma once

#include <array>
#include <cstddef>

#include "stepcast/operation/dtype.h"
#include "stepcast/platform/platform.h"

namespace stepcast {

struct Rate {
  double per_us = 0;     // FLOPs or bytes per microsecond
  bool assumed = false;  // the platform file does not say it
};

struct DeviceFigures {
  std::array<Rate, kDTypeCount> matrix;  // dense products of operands of this type, by the fastest unit
  std::array<bool, kDTypeCount> matrix_units{};  // by tensor cores or the like, not by ordinary arithmetic
  Rate vector;                                   // everything else; half types are computed in fp32
  Rate memory;                                   // bytes
  Rate l2;                                       // bytes
  Rate host_link;                                // bytes, one direction
  double sm_count = 1;
  double l2_bytes = 0;
  double kernel_floor_us = 0;
  double element_start_us = 0;  // the same of element-wise kernels in a step
  // FLOPs per microsecond that the power limit feeds for as long as one likes: on matrix units, and in fp32
  // products by ordinary arithmetic.
  double sustained_matrix_per_us = 0, sustained_vector_per_us = 0;

  [[nodiscard]] const Rate& matrix_of(DType dtype) const { return matrix[static_cast<std::size_t>(dtype)]; }
  [[nodiscard]] bool has_matrix_units(DType dtype) const {
    return matrix_units[static_cast<std::size_t>(dtype)];
  }
};

[[nodiscard]] DeviceFigures figures_of(const Device& device);

}  // namespace stepcast
