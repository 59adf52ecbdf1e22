// The shortest duration of some kinds of kernels, above the kernel floor of the GPU because they have several
// dependent steps.
#pragma once

#include "stepcast/cost/device_figures.h"
#include "stepcast/cost/kernel_implementation.h"
#include "stepcast/operation/operation.h"

namespace stepcast {

// Lower limit, in us, of a kernel of the kind `seen` that does `operation` or a part thereof. `operation`
// null: unknown.
[[nodiscard]] double shortest_kernel_us(const Operation* operation, KernelImplementation seen,
                                        const DeviceFigures& device);

}  // namespace stepcast
