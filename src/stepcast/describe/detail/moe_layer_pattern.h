// Megatron's --moe-layer-freq: which layers have experts.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "stepcast/base/result.h"
#include "stepcast/workload/transformer.h"

namespace stepcast::detail {

// A number, or a list such as "[0]*3+[1]*58" with an entry per layer. Sets the dense layers in front and the
// period behind; an error if the pattern is neither.
[[nodiscard]] Status read_moe_layer_pattern(std::string_view text, std::int64_t n_layers,
                                            MixtureOfExperts& moe);

// A list such as "[0]*3+[1]*58" as an entry per layer; `flag` says it.
[[nodiscard]] Result<std::vector<bool>> read_layer_list(std::string_view flag, std::string_view text,
                                                        std::int64_t n_layers);

}  // namespace stepcast::detail
