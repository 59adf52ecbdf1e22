// How much slower matrix work runs in a training step, at the clock that the power limit sustains, than in a
// benchmark of short runs: the platform record "sustained_clock".
//
// Time ratios of long over short runs at equal shapes are measured on devices that have both; on others they
// are carried over. They apply to what was measured in short runs, not to records of long ones.
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
  // Time of a long run over that of a short one, by the work of one kernel: linear in its logarithm between
  // knots, level beyond.
  struct Curve {
    KernelClass kernel_class = KernelClass::gemm;  // gemm or attention
    std::vector<DType> dtypes;
    std::vector<Flops> work;  // rises
    std::vector<double> factor;
  };
  std::vector<Curve> curves;
  // On the time of all matrix work, however it was measured: this device, limited in power, against the one
  // that was measured.
  double power_factor = 1;
  // Half-width in ln of the band of the curves: one error of all kernels together.
  double log_band = 0;

  // On the time of a kernel with `work` that was measured in short runs, or not (`sustained`). 1 for kinds
  // and types without a curve, times the power factor.
  [[nodiscard]] double factor(KernelClass kernel_class, DType dtype, Flops work, bool sustained) const;

  // Keys: curves[] (kernels: gemm or attention, dtypes, work_TFLOP, factor); power_factor (1 if it is missing),
  // log_band (0 if it is missing).
  // Errors: a factor below 1, work that does not rise, lists of different lengths, unknown names.
  [[nodiscard]] static Result<SustainedClock> read(const JsonValue& parameters);
  [[nodiscard]] JsonValue write() const;
};

}  // namespace stepcast
