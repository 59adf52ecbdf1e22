// Trains the model of embedding lookups (cost/learned_lookup.h) on measured kernels.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "stepcast/base/result.h"
#include "stepcast/cost/learned_lookup.h"
#include "stepcast/platform/platform.h"

#include "calibrate/kernel_fit.h"
#include "calibrate/lookup_measurements.h"

namespace stepcast {

// Fewer kernels than this of one type and direction are an error: a model with 21 features cannot be trained on them.
inline constexpr std::size_t kFewestLookupKernels = 30;

struct LookupFitOptions {
  std::uint64_t seed = 42;
};

// Times of a measured kernel by a model and by the analytic model, in microseconds.
struct LookupTimes {
  double learned_us = 0, analytic_us = 0;
};
[[nodiscard]] LookupTimes lookup_times(const LearnedLookup& model, const LookupMeasurement& kernel,
                                       const Device& device);

// Trains on these kernels only; they must be of one type and direction.
[[nodiscard]] Result<LearnedLookup> train_lookup(std::span<const LookupMeasurement> kernels,
                                                 const Device& device, const LookupFitOptions& options = {});

// Fits one record for every type and direction on all of its kernels. Errors and intervals in notes and records come from a
// previous training without a fifth of the kernels. All kernels must be of `device`. The same kernels, device and seed give
// the same records. Errors: too few kernels of a type and direction.
[[nodiscard]] Result<KernelFit> fit_lookup_models(std::span<const LookupMeasurement> kernels,
                                                  const Device& device, const LookupFitOptions& options = {});

}  // namespace stepcast
