// Forecasts of one job on several numbers of GPUs and at several batches, side by side.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "stepcast/analyze/forecast.h"

namespace stepcast {

struct ScalingPoint {
  std::int64_t n_gpus = 0, global_batch = 0;  // samples
  Forecast forecast;
  double bound_ms = 0;  // no step of this work at peak rates is shorter
};

[[nodiscard]] double samples_per_second(const ScalingPoint& point);
// Exposed communication as a share of the step, of the class that computes longest: that which the step waits for most.
[[nodiscard]] double exposed_share(const Forecast& forecast);
// Samples per second and GPU over those of the first point of the series.
[[nodiscard]] double scaling_efficiency(const ScalingPoint& first, const ScalingPoint& point);

// `series`: at least one.
// One JSON object, docs/schemas/scaling_series.json.
[[nodiscard]] std::string scaling_series_json(std::span<const ScalingPoint> series);
[[nodiscard]] std::string scaling_series_schema();

}  // namespace stepcast
