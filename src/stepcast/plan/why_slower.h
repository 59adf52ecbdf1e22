// Whether products in fp8 or fp4 make a step faster than those in 16 bits, and why not where they do not.
//
//   if (const auto why = why_slower(narrow, DType::fp8, wide, DType::bf16)) notes.push_back(*why);
#pragma once

#include <optional>
#include <string>

#include "stepcast/operation/dtype.h"
#include "stepcast/predict/step_prediction.h"
#include "stepcast/workload/layout.h"

namespace stepcast {

// "fp8 is slower than bf16 here, 552.6 against 509.4 ms: gemm takes 21.0 ms less, elementwise 48.2 and host 16.0 ms more".
// Nothing where it is not. Both of one layout.
[[nodiscard]] std::optional<std::string> why_slower(const StepPrediction& narrow, DType narrow_type,
                                                    const StepPrediction& wide, DType wide_type);

// The same layout with products in the type of everything else; nothing where they are.
[[nodiscard]] std::optional<Layout> with_wide_products(const Layout& layout);

}  // namespace stepcast
