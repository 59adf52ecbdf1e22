// Suggestions for a described job, for `predict`.
//
//   step.forecast.what_to_change = what_to_change(given_words(), session, request, step.forecast);
//
// Each suggestion is a complete command line that is parsed and forecast as if it were typed, so the command
// prints the expected saving. GPUs, batch, model and precision are kept; more GPUs are tried if nothing fits.
// Cost: about 20 forecasts of one layout, and a layout search if part of the layout was given.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "stepcast/api/stepcast.h"

namespace stepcast::cli {

// `words`: the command line after the program name, with the request `request` and the answer `forecast`.
// Nothing for jobs without a layout to change: several pools of GPUs, the largest batch that fits.
[[nodiscard]] std::optional<ForecastAdvice> what_to_change(std::span<const std::string> words,
                                                           const Session& session,
                                                           const PredictRequest& request,
                                                           const Forecast& forecast);

}  // namespace stepcast::cli
