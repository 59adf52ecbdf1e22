#include "stepcast/predict/step_assumptions.h"

#include <algorithm>
#include <array>
#include <cmath>

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

namespace {

constexpr double kGpusOfNode = 8;

// The normal quantile of 1 - `tail` for tails below one half: Abramowitz and Stegun 26.2.23, within 4.5e-4.
double upper_quantile(double tail) {
  const double t = std::sqrt(-2 * std::log(tail));
  return t -
         (2.515517 + t * (0.802853 + t * 0.010328)) / (1 + t * (1.432788 + t * (0.189269 + t * 0.001308)));
}

double expected_largest(double n) { return upper_quantile(0.625 / (n + 0.25)); }

}  // namespace

double slowest_gpu_excess(std::int64_t n_gpus, double spread) {
  const double n = static_cast<double>(n_gpus);
  if (n <= kGpusOfNode) return 0;
  return spread * (expected_largest(n) - expected_largest(kGpusOfNode));
}

}  // namespace stepcast
