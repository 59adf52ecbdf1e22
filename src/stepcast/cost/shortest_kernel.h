// Kernels take more than the shortest one of the GPU where what they do has several steps, however little it is.
#pragma once

#include "stepcast/cost/device_figures.h"
#include "stepcast/cost/kernel_implementation.h"
#include "stepcast/operation/operation.h"

namespace stepcast {

// The least that a kernel takes which does `operation` or a share of it (null: not known what) and is of the sort `seen`.
[[nodiscard]] double shortest_kernel_us(const Operation* operation, KernelImplementation seen,
                                        const DeviceFigures& device);

}  // namespace stepcast
