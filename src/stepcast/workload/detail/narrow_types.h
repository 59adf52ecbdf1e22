// Types that only GEMMs support: activations and all other work use Precision::other.
#pragma once

#include "stepcast/operation/dtype.h"

namespace stepcast::detail {

[[nodiscard]] constexpr bool is_narrow(DType dtype) { return dtype == DType::fp8 || dtype == DType::fp4; }

}  // namespace stepcast::detail
