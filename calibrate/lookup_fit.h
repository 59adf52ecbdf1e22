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

// Fewer kernels than this of one type and direction are refused: what 21 features enter learns nothing from them.
inline constexpr std::size_t kFewestLookupKernels = 30;

struct LookupFitOptions {
  std::uint64_t seed = 42;
};

// What a model and the analytic one before it say of a measured kernel, in microseconds.
struct LookupTimes {
  double learned_us = 0, analytic_us = 0;
};
[[nodiscard]] LookupTimes lookup_times(const LearnedLookup& model, const LookupMeasurement& kernel,
                                       const Device& device);

// From these kernels alone, all of one type and direction.
[[nodiscard]] Result<LearnedLookup> train_lookup(std::span<const LookupMeasurement> kernels,
                                                 const Device& device, const LookupFitOptions& options = {});

// One record for every type and direction, trained on all of its kernels. Errors and intervals in the notes and records are
// those of a fifth of the kernels, held out of a training before. All kernels must be of `device`. The same kernels, device
// and seed give the same records. Errors: too few kernels of a type and direction.
[[nodiscard]] Result<KernelFit> fit_lookup_models(std::span<const LookupMeasurement> kernels,
                                                  const Device& device, const LookupFitOptions& options = {});

}  // namespace stepcast
