// The dense FFN of a layer as a module.
#pragma once

#include <cstdint>

#include "stepcast/workload/modules/layer_module.h"

namespace stepcast {

[[nodiscard]] const LayerModule& feed_forward();
// Parameters of an FFN on vectors of `hidden_size`, with the biases and gates of the model.
[[nodiscard]] std::int64_t ffn_parameters(const Transformer& model, std::int64_t hidden_size,
                                          std::int64_t ffn_hidden_size);

}  // namespace stepcast
