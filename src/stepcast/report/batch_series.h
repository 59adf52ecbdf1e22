// Forecasts of one step at several batches, side by side: step, samples per second, and where the memory ends.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "stepcast/analyze/forecast.h"

namespace stepcast {

struct BatchForecast {
  std::int64_t batch_per_rank = 0;
  Forecast forecast;
};

// The largest batch whose tensors fit: activations of the last forecast in proportion, the rest as it is. Nothing where
// memory is not known. `series`: at least one, ascending.
[[nodiscard]] std::optional<std::int64_t> largest_batch(std::span<const BatchForecast> series);

// `series`: at least one, ascending.
// One JSON object, docs/schemas/batch_series.json.
[[nodiscard]] std::string batch_series_json(std::span<const BatchForecast> series);
[[nodiscard]] std::string batch_series_schema();

}  // namespace stepcast
