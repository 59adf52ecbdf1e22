// What a framework does unless told otherwise (workload/framework_rule.h), put into a layout: which kernels it fuses, which
// transfers it overlaps, in which type it reduces gradients.
#pragma once

#include "stepcast/workload/layout.h"

namespace stepcast {

// Sets fused kernels, overlap, precision and dispatcher of `layout` to the habits of `framework` for GEMMs in `compute`.
// Degrees and batches stay.
void set_software_defaults(Layout& layout, Framework framework, DType compute);

}  // namespace stepcast
