// Factors on the times of kernels and collectives, fitted to measured steps of a platform: the platform
// record "step_factors", written by `stepcast calibrate iterations`.
#pragma once

#include <span>
#include <string_view>

#include "stepcast/base/json_value.h"
#include "stepcast/base/result.h"

namespace stepcast {

// Name and `kind` of the record.
inline constexpr std::string_view kStepFactorsKind = "step_factors";

// Each factor multiplies a time; 1 changes nothing.
struct StepFactors {
  double gemm = 1, fp8_gemm = 1, weight_gradient = 1, attention = 1, memory_bound = 1;
  double unmeasured_kernels = 1;  // of all kernels without a measurement on the device
  double experts = 1;             // of the kernels that experts add to a layer
  // Of collectives: all, inside a node, between nodes.
  double communication = 1, intra_node = 1, inter_node = 1;

  // Keys of step_factor_fields(), each optional. Errors: a factor outside of its limits, an unknown key.
  [[nodiscard]] static Result<StepFactors> read(const JsonValue& parameters);
  // Factors of 1 are omitted.
  [[nodiscard]] JsonValue write() const;
};

// Name, member and limits of a factor.
struct StepFactorField {
  std::string_view key;  // in the record: "gemm_factor"
  double StepFactors::*member;
  double minimum, maximum;
};
// All factors, in the order in which they are written.
[[nodiscard]] std::span<const StepFactorField> step_factor_fields();

}  // namespace stepcast
