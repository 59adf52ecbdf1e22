// The part of a layer that passes a state between tokens instead of attending (StateMixer).
#pragma once

#include <cstdint>

#include "stepcast/workload/modules/layer_module.h"
#include "stepcast/workload/transformer.h"

namespace stepcast {

// Sizes of a recurrent mixer in elements; requires a model with a state_mixer.
struct StateParts {
  std::int64_t columns = 0;   // of the input GEMM
  std::int64_t channels = 0;  // that pass through the convolution
  // Two sequential GEMMs on a part of these columns, `inner_width` columns wide: Mamba-1 computes keys and a
  // low-rank vector of steps, then expands the latter; for channel_delta the first GEMM is part of `columns`.
  std::int64_t inner_width = 0, inner_columns = 0, inner_rank = 0, inner_out = 0;
  std::int64_t vectors = 0;  // parameters of decays, step biases and norms
  std::int64_t kept = 0;     // per token for the backward pass: results of GEMMs, convolution, scan and norm
};
[[nodiscard]] StateParts state_parts(const Transformer& model);

[[nodiscard]] const LayerModule& state_mixer();

}  // namespace stepcast
