// Explains why GEMMs in fp8 or fp4 make a step slower than in 16 bits.
//
//   if (const auto why = why_slower(narrow, DType::fp8, wide, DType::bf16)) notes.push_back(*why);
#pragma once

#include <optional>
#include <string>

#include "stepcast/operation/dtype.h"
#include "stepcast/predict/step_prediction.h"
#include "stepcast/workload/layout.h"

namespace stepcast {

// Example: "fp8 is slower than bf16 here, 552.6 against 509.4 ms: gemm takes 21.0 ms less, elementwise 48.2 and host 16.0 ms
// more". Empty if it is not slower. Both steps must have the same layout.
[[nodiscard]] std::optional<std::string> why_slower(const StepPrediction& narrow, DType narrow_type,
                                                    const StepPrediction& wide, DType wide_type);

// The same layout with GEMMs in the type of all other operations; empty if they already are.
[[nodiscard]] std::optional<Layout> with_wide_products(const Layout& layout);

}  // namespace stepcast
