// Forecasts of one step at several batches, side by side: step, samples per second, and where the memory ends.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "stepcast/analyze/forecast.h"

namespace stepcast {

struct BatchForecast {
  std::int64_t batch_per_rank = 0;
  Forecast forecast;
};

// `series`: at least one, ascending.
[[nodiscard]] std::string batch_series_text(std::span<const BatchForecast> series);
// One JSON object, docs/schemas/batch_series.json.
[[nodiscard]] std::string batch_series_json(std::span<const BatchForecast> series);

}  // namespace stepcast
