// The expected step: the forecast, times a factor where a search picked the layout.
//
// Callers scale a forecast by the distribution of promise_prior().
//
// The minimum of thousands of forecasts is optimistic (winner's curse), and a search combines settings that were not tuned
// together yet. The factor is measured: over families of published runs (model, GPUs, type, batch), the fastest published
// step over the forecast of what the search picks for the same job. `validate iterations` fits that distribution without
// the family that it scores (`plan_promise`). Every answer takes it from here: `plan` for its layouts, Session for the
// layouts that it completes (Forecast::promised_step_time_ms).
#pragma once

#include <cstdint>
#include <vector>

#include "stepcast/operation/estimate.h"

namespace stepcast {

// Distribution of measured over forecast step times: the median, and the standard deviation of the logarithm.
struct PromisePrior {
  double median = 1, spread = 0;
};
// Fits the distribution to ratios measured / forecast.
[[nodiscard]] PromisePrior fit_promise(const std::vector<double>& measured_over_forecast);
// Whether the user or a search chose the layout or a part.
enum class LayoutOrigin : std::uint8_t { given, searched };
// For searched layouts of models with experts: fitted to all published families. For all others 1, without spread.
[[nodiscard]] PromisePrior promise_prior(bool has_experts, LayoutOrigin origin);
// The forecast times the median, with the wider of both bands.
[[nodiscard]] Estimate promised(const Estimate& forecast, const PromisePrior& prior);

}  // namespace stepcast
