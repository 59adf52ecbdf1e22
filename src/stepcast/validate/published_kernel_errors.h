// Errors that the published operator models (Zhang et al., HiPC 2025) state for themselves, to compare with.
#pragma once

#include <optional>
#include <string_view>

#include "stepcast/operation/operation.h"

namespace stepcast {

// The best error that the model search of that work found, as a percentage, for one operator of one GPU in
// one direction (optimizer steps count as forward). Nothing where it states none. Only compared with; no
// prediction uses it.
[[nodiscard]] std::optional<double> published_kernel_error_percent(std::string_view gpu,
                                                                   std::string_view operator_label,
                                                                   Direction direction);

// True for the operators of that work, whatever the GPU.
[[nodiscard]] bool is_published_operator(std::string_view operator_label);

}  // namespace stepcast
