// Types that only matrix products run in: activations and all other work keep Precision::other beside them.
#pragma once

#include "stepcast/operation/dtype.h"

namespace stepcast::detail {

[[nodiscard]] constexpr bool is_narrow(DType dtype) { return dtype == DType::fp8 || dtype == DType::fp4; }

}  // namespace stepcast::detail
