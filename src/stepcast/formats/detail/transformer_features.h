// What tables say of models: members of a Transformer by their names.
//
//   {"norm": "rms_norm", "qk_norm": true, "moe": {"n_experts": 8, "experts_per_token": 2}}
#pragma once

#include "stepcast/base/object_reader.h"
#include "stepcast/base/result.h"
#include "stepcast/workload/transformer.h"

namespace stepcast::detail {

// Into `model`, which keeps what is not said. Keys of other things are left for the caller's finish().
[[nodiscard]] Status read_features(ObjectReader& keys, Transformer& model);

}  // namespace stepcast::detail
