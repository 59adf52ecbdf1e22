// Slowdown of matrix work in a training step, at the clock that the power limit sustains, relative to a
// benchmark of short runs: the platform record "sustained_clock".
//
// Time ratios of long to short runs at equal shapes are measured on devices that have both; other devices
// reuse them. They apply to records of short runs, not of long ones.
#pragma once

#include <string_view>
#include <vector>

#include "stepcast/base/json_value.h"
#include "stepcast/base/quantity.h"
#include "stepcast/base/result.h"
#include "stepcast/operation/dtype.h"
#include "stepcast/operation/kernel_class.h"

namespace stepcast {

// Name and `kind` of the record.
inline constexpr std::string_view kSustainedClockKind = "sustained_clock";

struct SustainedClock {
  // Time of a long run over a short one, by the work of one kernel: linear in its logarithm between knots,
  // constant beyond.
  struct Curve {
    KernelClass kernel_class = KernelClass::gemm;  // gemm or attention
    std::vector<DType> dtypes;
    std::vector<Flops> work;     // increasing
    std::vector<double> factor;  // 1 or more, one per knot
  };
  std::vector<Curve> curves;
  // Factor on all matrix work, of short and long runs: this power-limited device relative to the measured
  // one.
  double power_factor = 1;
  // Half-width of the band of the curves in ln; one common error of all kernels.
  double log_band = 0;

  // Factor on the time of a kernel with `work` FLOPs, measured in short runs or in long ones (`sustained`).
  // Kinds and types without a curve have only the power factor.
  [[nodiscard]] double factor(KernelClass kernel_class, DType dtype, Flops work, bool sustained) const;

  // Keys: curves[] (kernels: gemm or attention, dtypes, work_TFLOP, factor); power_factor (1 if missing),
  // log_band (0 if missing). Errors: a factor below 1, work that does not increase, lists of different
  // lengths, unknown names.
  [[nodiscard]] static Result<SustainedClock> read(const JsonValue& parameters);
  [[nodiscard]] JsonValue write() const;
};

}  // namespace stepcast
