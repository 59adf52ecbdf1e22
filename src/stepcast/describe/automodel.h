// NeMo Automodel: layers of Transformer Engine as NeMo has them, weights sharded by FSDP 2, tokens moved by DeepEP.
#pragma once

#include <string_view>

#include "stepcast/describe/job.h"

namespace stepcast {

// Whether `framework`, as somebody wrote it, is that one: parse_framework() says NeMo.
[[nodiscard]] bool is_automodel(std::string_view framework);
// Unless something else was said: shards weights, keeps them in bf16 alone and so their gradients and Adam's moments, as
// models are loaded (`torch_dtype`) and PyTorch's optimizers follow, and takes DeepEP where experts are spread over ranks.
void set_automodel_defaults(JobSettings& settings);

}  // namespace stepcast
