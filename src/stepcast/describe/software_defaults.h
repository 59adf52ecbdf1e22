// Default choices of a framework (workload/framework_rule.h): which kernels it fuses, which transfers it
// overlaps, in which type it reduces gradients.
#pragma once

#include "stepcast/workload/layout.h"

namespace stepcast {

// Sets fused kernels, overlap, precision, dispatcher and CUDA graphs of `layout` to the defaults of
// `framework` for GEMMs in `compute`. Reads `layer.sequence_parallel` and the virtual stages of `layout`.
// Degrees and batches do not change.
void set_software_defaults(Layout& layout, Framework framework, DType compute);

}  // namespace stepcast
