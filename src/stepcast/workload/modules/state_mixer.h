// The part of a layer that carries a state from token to token instead of attending (StateMixer).
#pragma once

#include <cstdint>

#include "stepcast/workload/modules/layer_module.h"
#include "stepcast/workload/transformer.h"

namespace stepcast {

// What a recurrent mixer consists of, in elements, for a model that has one.
struct StateParts {
  std::int64_t columns = 0;   // of the product with its input
  std::int64_t channels = 0;  // that pass the convolution
  // Two products in a row with some of these columns, the first `width` of them wide: Mamba-1 makes keys and a narrow
  // vector of steps and widens that; channel_delta has the first within `columns`.
  std::int64_t inner_width = 0, inner_columns = 0, inner_rank = 0, inner_out = 0;
  std::int64_t vectors = 0;  // decays, biases of steps, norms
  std::int64_t kept =
      0;  // of a token for the backward pass: results of its products, convolution, scan and norm
};
[[nodiscard]] StateParts state_parts(const Transformer& model);

[[nodiscard]] const LayerModule& state_mixer();

}  // namespace stepcast
