// Names of enumerators in records, reports and rules of framework operators.
#pragma once

#include <string_view>

#include "stepcast/base/names.h"
#include "stepcast/operation/operation.h"

namespace stepcast::detail {

inline constexpr auto kDirectionNames =
    names<Direction::weight_gradient>({"forward", "backward", "input_gradient", "weight_gradient"});

inline constexpr auto kGemmLayoutNames = names<GemmLayout::tt>({"any", "tn", "nn", "nt", "tt"});

inline constexpr auto kAttentionKernelNames =
    names<AttentionKernel::efficient>({"any", "flash1", "flash2", "flash3", "efficient"});

inline constexpr auto kNormNames =
    names<NormKind::group_norm>({"layer_norm", "rms_norm", "batch_norm", "group_norm"});

inline constexpr auto kSoftmaxNames =
    names<SoftmaxKind::causal_masked>({"softmax", "log_softmax", "causal_softmax"});

inline constexpr auto kElementwiseNames = names<ElementwiseFunction::rotary_unfused>(
    {"elementwise",  "add",          "multiply",        "divide",
     "power",        "add_scalar",   "multiply_scalar", "divide_scalar",
     "power_scalar", "cast",         "masked_fill",     "relu",
     "gelu",         "tanh",         "sigmoid",         "silu",
     "gated_silu",   "squared_relu", "exponential",     "dropout",
     "rotary",       "residual_add", "rotary_unfused"});

inline constexpr auto kMovementNames =
    names<MovementKind::fill>({"copy", "transpose", "concatenate", "split", "gather", "scatter", "fill"});

inline constexpr auto kTransferNames = names<MemcpyKind::peer>(
    {"memset", "memcpy_h2d", "memcpy_d2h", "memcpy_d2d", "memcpy_h2h", "memcpy_peer"});

// Family of an element-wise function: plain arithmetic (add to power_scalar) is one family, and the shape has
// the details.
[[nodiscard]] constexpr std::string_view family_of_elementwise(ElementwiseFunction function) {
  const bool plain = function >= ElementwiseFunction::add && function <= ElementwiseFunction::power_scalar;
  return kElementwiseNames[plain ? ElementwiseFunction::other : function];
}

}  // namespace stepcast::detail
