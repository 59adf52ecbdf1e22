// The time of fused attention as blocks of queries that iterate over their keys.
#pragma once

#include "stepcast/cost/device_figures.h"
#include "stepcast/operation/operation.h"

namespace stepcast::detail {

// Time in us without the launch floor. `work`: work_of() the operation.
[[nodiscard]] double attention_us(const AttentionShape& shape, DType dtype, Direction direction,
                                  const Work& work, const DeviceFigures& device);

// Share of the matrix peak that a kernel reaches on long sequences; kernels differ by a factor of two on one
// device. `any` is the best kernel that is known to run on a device with such a peak.
struct AttentionRate {
  double forward = 0, backward = 0;
  double half_length = 0;  // keys at which half of the rate is reached
};
// The rate of a kernel on a device with a matrix peak of `matrix_per_us` FLOPs per us.
[[nodiscard]] AttentionRate attention_rate(AttentionKernel kernel, double matrix_per_us, double head_dim);

}  // namespace stepcast::detail
