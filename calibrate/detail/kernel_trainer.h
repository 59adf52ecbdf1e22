// Fits one kernel record: the constants of the reference, then the correction with the least error on held-out rows, then
// the interval from the same residuals.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "stepcast/base/result.h"
#include "stepcast/cost/families/fitted_kernel.h"
#include "stepcast/operation/operation.h"
#include "stepcast/platform/platform.h"

#include "calibrate/kernel_fit.h"

namespace stepcast::detail {

// Measurements of one family, dtype and direction on one device.
struct KernelRows {
  std::string_view family;  // from record_families()
  std::vector<const Operation*> operations;
  std::vector<double> log_us;
  // A quantity that grows with the size of the model; 0 if unknown. It determines the outer shell.
  std::vector<double> model_size;
  bool sustained = false;  // true for all rows, see FittedKernel::sustained
  bool cold = true;        // true for all rows, see FittedKernel::cold
};

struct TrainedKernel {
  FittedKernel kernel;
  KernelFitNote note;
};

[[nodiscard]] Result<TrainedKernel> train_kernel(const KernelRows& rows, const Device& device,
                                                 std::uint64_t seed);

}  // namespace stepcast::detail
