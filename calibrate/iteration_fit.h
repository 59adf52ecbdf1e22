// Fits a few global factors of the step model to measured steps of a user.
//
// Kernels and collectives are learned from their own measurements. Steps only add common factors: of all GEMMs, GEMMs in fp8,
// memory-bound kernels, attention and transfers of a machine, and of all kernels without measurements on its device. A prior
// keeps each factor near 1, with the width of the uncertainty of the price. A factor that the runs do not determine stays 1
// and is named. Single runs that no model explains (stragglers, allocator retries) have little influence, because the loss is
// linear beyond a few percent.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "stepcast/base/result.h"
#include "stepcast/platform/platform.h"
#include "stepcast/predict/step_assumptions.h"
#include "stepcast/workload/layout.h"
#include "stepcast/workload/transformer.h"

namespace stepcast {

struct MeasuredStep {
  Transformer model;
  Layout layout;
  const Platform* platform = nullptr;
  double step_time_ms = 0;
};

struct IterationFit {
  StepAssumptions assumptions;
  std::size_t n = 0;                       // steps with a prediction
  double mape_before = 0, mape_after = 0;  // percent, on the steps themselves
  double median_before = 0, median_after = 0;
  std::vector<std::string> skipped;            // "run 3: the reason"
  std::vector<std::string_view> undetermined;  // factors that these steps do not determine
};

// The factors that may be fitted.
struct FittedFactor {
  std::string_view name;
  double StepAssumptions::*member;
  double prior_sd;  // standard deviation of its logarithm in the prior. Assumed
};
[[nodiscard]] std::span<const FittedFactor> fitted_factors();

// Fits from `start`, the assumptions of the platform. An error if no step can be predicted.
[[nodiscard]] Result<IterationFit> fit_iterations(std::span<const MeasuredStep> steps,
                                                  const StepAssumptions& start = {});

// The factors as a record of a platform file, which TrainingKernels and StepPricer read.
[[nodiscard]] ModelRecord step_factors_record(const StepAssumptions& assumptions);

}  // namespace stepcast
