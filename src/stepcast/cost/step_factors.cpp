#include "stepcast/cost/step_factors.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "stepcast/cost/families/record_numbers.h"

namespace stepcast {

// Limits on both sides, so that an implausible factor is an error.
std::span<const StepFactorField> step_factor_fields() {
  using F = StepFactors;
  static constexpr std::array kFields = {
      StepFactorField{"gemm_factor", &F::gemm, 0.2, 5},
      StepFactorField{"fp8_gemm_factor", &F::fp8_gemm, 0.2, 5},
      StepFactorField{"unmeasured_kernels_factor", &F::unmeasured_kernels, 0.1, 10},
      StepFactorField{"weight_gradient_factor", &F::weight_gradient, 0.5, 3},
      StepFactorField{"attention_factor", &F::attention, 0.2, 5},
      StepFactorField{"memory_bound_factor", &F::memory_bound, 0.2, 5},
      StepFactorField{"expert_factor", &F::experts, 0.2, 5},
      StepFactorField{"communication_factor", &F::communication, 0.2, 5},
      StepFactorField{"intra_node_factor", &F::intra_node, 0.001, 1000},
      StepFactorField{"inter_node_factor", &F::inter_node, 0.001, 1000},
  };
  return kFields;
}

Result<StepFactors> StepFactors::read(const JsonValue& parameters) {
  if (!parameters.is_object()) return Error{"the parameters are not an object"};
  StepFactors factors;
  for (const JsonValue::Member& member : parameters.members()) {
    const auto field = std::ranges::find(step_factor_fields(), member.key, &StepFactorField::key);
    if (field == step_factor_fields().end()) return Error{fmt::format("`{}` is not known", member.key)};
    STEPCAST_ASSIGN(const double value, finite_number(parameters, field->key));
    if (!(value >= field->minimum && value <= field->maximum)) {
      return Error{fmt::format("`{}` is {:g} (must be from {:g} to {:g})", field->key, value, field->minimum,
                               field->maximum)};
    }
    factors.*(field->member) = value;
  }
  return factors;
}

JsonValue StepFactors::write() const {
  JsonValue value = JsonValue::object();
  for (const StepFactorField& field : step_factor_fields())
    if (this->*(field.member) != 1) value.add(field.key, JsonValue{this->*(field.member)});
  return value;
}

}  // namespace stepcast
