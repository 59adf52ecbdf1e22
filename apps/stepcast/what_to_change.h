// What to change of a described job: for `predict`, whose forecast says where the time goes.
//
//   step.forecast.what_to_change = what_to_change(given_words(), session, request, step.forecast);
//
// Every change is a command line of its own, which is read and answered as if somebody had typed it: what an action promises is
// what its command prints. GPUs, batch, model and precision stay; more GPUs are tried where nothing fits. Some 20 forecasts of one
// layout, and one search of layouts where part of the layout is said.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "stepcast/api/stepcast.h"

namespace stepcast::cli {

// `words`: the command line behind the program, which asks `request`, and whose answer is `forecast`. Nothing for what has no
// layout to change: several pools of GPUs, the largest batch that fits.
[[nodiscard]] std::optional<ForecastAdvice> what_to_change(std::span<const std::string> words,
                                                           const Session& session,
                                                           const PredictRequest& request,
                                                           const Forecast& forecast);

}  // namespace stepcast::cli
