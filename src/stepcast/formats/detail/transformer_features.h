// Reads model properties in tables: members of Transformer by name.
//
//   {"norm": "rms_norm", "qk_norm": true, "moe": {"n_experts": 8, "experts_per_token": 2}}
#pragma once

#include "stepcast/base/object_reader.h"
#include "stepcast/base/result.h"
#include "stepcast/workload/transformer.h"

namespace stepcast::detail {

// Sets the members that `keys` contains; others keep their value. Keys that are not members remain for the
// caller's finish().
[[nodiscard]] Status read_features(ObjectReader& keys, Transformer& model);

}  // namespace stepcast::detail
