// Configs of NeMo 2 and Megatron-Bridge as a job: a model in Megatron's own words, or a class that stands for one.
#pragma once

#include "stepcast/base/json_value.h"
#include "stepcast/base/result.h"
#include "stepcast/describe/framework_config.h"

namespace stepcast::detail {

// Fills `out` from the document of `said.config`; errors as parse_framework_config() has them.
[[nodiscard]] Status read_nemo_config(const JsonValue& root, const Job& said, FrameworkConfig& out);

}  // namespace stepcast::detail
