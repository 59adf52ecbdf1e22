// Fits one kernel record: the constants of the reference, then the correction that does best on rows that
// were held out, then the interval from the same residuals.
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
  std::string_view family;  // as record_families() says
  std::vector<const Operation*> operations;
  std::vector<double> log_us;
  // What larger models have more of; 0 where not known. Decides what is the outer shell.
  std::vector<double> model_size;
  bool sustained = false;  // all of them, as FittedKernel::sustained
  bool cold = true;        // all of them, as FittedKernel::cold
};

struct TrainedKernel {
  FittedKernel kernel;
  KernelFitNote note;
};

[[nodiscard]] Result<TrainedKernel> train_kernel(const KernelRows& rows, const Device& device,
                                                 std::uint64_t seed);

}  // namespace stepcast::detail
