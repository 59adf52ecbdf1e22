// Forecasts of one job side by side: on several numbers of GPUs and at several batches; of one recorded step at several
// batches.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "stepcast/analyze/forecast.h"
#include "stepcast/report/document.h"

namespace stepcast {

struct ScalingPoint {
  std::int64_t n_gpus = 0, global_batch = 0;  // samples
  Forecast forecast;
  double bound_ms = 0;           // no step of this work at peak rates is shorter
  std::string layout{};          // of a described step: "tp2 dp8 mbs1"
  std::int64_t micro_batch = 0;  // sequences, of a described step
  // Where nobody said the layout: "what `stepcast plan` chooses", "the least that fits", "as in the first line".
  std::string layout_source{};
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
[[nodiscard]] ReportDocument scaling_series_document(std::span<const ScalingPoint> series,
                                                     Shown made_for = Shown::everywhere);

// Step, samples per second, and where the memory ends.
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
[[nodiscard]] ReportDocument batch_series_document(std::span<const BatchForecast> series,
                                                   Shown made_for = Shown::everywhere);

}  // namespace stepcast
