#include "stepcast/predict/step_assumptions.h"

#include <array>

namespace stepcast {

std::span<const StepAssumptionField> step_assumption_fields() {
  using A = StepAssumptions;
  static constexpr std::array kFields = {
      StepAssumptionField{"host_launch_us", &A::host_launch_us, 0, 1000, "host time per kernel, eager"},
      StepAssumptionField{"compiled_host_launch_us", &A::compiled_host_launch_us, 0, 1000,
                          "host time per kernel, compiled"},
      StepAssumptionField{"step_fixed_us", &A::step_fixed_us, 0, 1e7, "time between two steps"},
      StepAssumptionField{"gpu_speed_spread", &A::gpu_speed_spread, 0, 0.2,
                          "standard deviation of how fast GPUs of one kind compute"},
      StepAssumptionField{"gemm_factor", &A::gemm_factor, 0.2, 5, "time of matrix products"},
      StepAssumptionField{"fp8_gemm_factor", &A::fp8_gemm_factor, 0.2, 5,
                          "time of matrix products in fp8 and fp4, on top"},
      StepAssumptionField{"unmeasured_kernels_factor", &A::unmeasured_kernels_factor, 0.1, 10,
                          "time of kernels that were not measured on the device, on top"},
      StepAssumptionField{"weight_gradient_factor", &A::weight_gradient_factor, 0.5, 3,
                          "time of a weight gradient over that of a forward product"},
      StepAssumptionField{"attention_factor", &A::attention_factor, 0.2, 5, "time of fused attention"},
      StepAssumptionField{"fp8_gemm_time_ratio", &A::fp8_gemm_time_ratio, 0.4, 1,
                          "time of an fp8 product over that in bf16"},
      StepAssumptionField{"memory_bound_factor", &A::memory_bound_factor, 0.2, 5,
                          "time of memory-bound kernels"},
      StepAssumptionField{"communication_factor", &A::communication_factor, 0.2, 5, "time of transfers"},
      StepAssumptionField{"expert_factor", &A::expert_factor, 0.2, 5, "time of what experts add to a layer"},
      StepAssumptionField{"intra_node_factor", &A::intra_node_factor, 0.001, 1000,
                          "time of transfers inside a node"},
      StepAssumptionField{"inter_node_factor", &A::inter_node_factor, 0.001, 1000,
                          "time of transfers between nodes"},
      StepAssumptionField{"host_factor", &A::host_factor, 0.01, 100, "host time of recorded steps"},
      StepAssumptionField{"overlap_slowdown", &A::overlap_slowdown, 0, 1,
                          "slowdown of computation during transfers"},
      StepAssumptionField{"structure_low", &A::structure_low, 0, 0.9, "share of the band to the fast side"},
      StepAssumptionField{"structure_assumed", &A::structure_assumed, 0, 10,
                          "share of the band of what is only assumed"},
      StepAssumptionField{"structure_high", &A::structure_high, 0, 10, "share of the band to the slow side"},
  };
  return kFields;
}

}  // namespace stepcast
