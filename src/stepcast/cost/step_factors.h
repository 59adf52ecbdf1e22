// Factors on the times of kernels and collectives that were fitted to measured steps of a platform: the
// platform record "step_factors", which `stepcast calibrate iterations` writes.
#pragma once

#include <span>
#include <string_view>

#include "stepcast/base/json_value.h"
#include "stepcast/base/result.h"

namespace stepcast {

// Name and `kind` of the record.
inline constexpr std::string_view kStepFactorsKind = "step_factors";

// Each multiplies a time; 1 changes nothing.
struct StepFactors {
  double gemm = 1, fp8_gemm = 1, weight_gradient = 1, attention = 1, memory_bound = 1;
  double unmeasured_kernels = 1;  // of all kernels whose time no measurement of the device stands behind
  double experts = 1;             // of what experts add to a layer
  double communication = 1, intra_node = 1, inter_node = 1;

  // Keys of step_factor_fields(), each of which may be missing. Errors: a factor outside of its limits, a key
  // that is not known.
  [[nodiscard]] static Result<StepFactors> read(const JsonValue& parameters);
  // Factors of 1 are left out.
  [[nodiscard]] JsonValue write() const;
};

struct StepFactorField {
  std::string_view key;  // in the record: "gemm_factor"
  double StepFactors::*member;
  double minimum, maximum;
};
[[nodiscard]] std::span<const StepFactorField> step_factor_fields();

}  // namespace stepcast
