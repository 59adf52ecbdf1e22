// What the software of a training run does unless told otherwise: which kernels it fuses, which transfers it
// hides, in which type it reduces gradients. As commonly known of each
// framework; documentation and sources were not read again (docs/constants.md).
#pragma once

#include <string_view>

#include "stepcast/workload/layout.h"

namespace stepcast {

// Sets fused kernels, overlap, precision and prefetch of `layout` to the defaults of `framework` for products
// in `compute`. Degrees and batches stay.
void set_software_defaults(Layout& layout, Framework framework, DType compute);

// "Megatron-LM", "NeMo / Megatron Core", "llm-foundry (PyTorch FSDP)", "TorchTitan torch.compile", ...
// `unknown` for what nobody knows.
[[nodiscard]] Framework parse_framework(std::string_view text);

}  // namespace stepcast
