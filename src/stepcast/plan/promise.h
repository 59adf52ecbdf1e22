// What to count on of the layout that a search picks.
//
//   promised(chosen.step.step, promise_prior(has_experts)).time
//
// The least of thousands of forecasts errs to the fast side more than any one of them, and it puts settings together that
// nobody tuned together yet. By how much is measured: over families of published runs (model, GPUs, type, batch), the
// fastest step that was published over the forecast of what the search picks for the same job. `validate iterations`
// fits that distribution without the family that it scores (`plan_promise`).
#pragma once

#include <vector>

#include "stepcast/operation/estimate.h"

namespace stepcast {

// Of measured over forecast: the median, and the standard deviation of the logarithm.
struct PromisePrior {
  double median = 1, spread = 0;
};
[[nodiscard]] PromisePrior fit_promise(const std::vector<double>& measured_over_forecast);
// Fitted to all families of models with experts; of others the forecast itself is what to count on.
[[nodiscard]] PromisePrior promise_prior(bool has_experts);
// The forecast times the median, in the wider one of both bands.
[[nodiscard]] Estimate promised(const Estimate& forecast, const PromisePrior& prior);

}  // namespace stepcast
