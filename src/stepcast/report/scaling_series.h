// Forecasts of one job side by side: on several numbers of GPUs and at several batches. Also those of one
// recorded step at several batches.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "stepcast/analyze/forecast.h"
#include "stepcast/report/document.h"

namespace stepcast {

// One forecast of the series.
struct ScalingPoint {
  std::int64_t n_gpus = 0, global_batch = 0;  // samples per step
  Forecast forecast;
  double bound_ms = 0;           // lower bound: the time of this work at peak rates
  std::string layout{};          // of a described step: "tp2 dp8 mbs1"
  std::int64_t micro_batch = 0;  // sequences; of a described step
  // If the layout was not given, where it comes from: "what `stepcast plan` chooses", "the least that fits",
  // "as in the first line".
  std::string layout_source{};
};

// Samples of the global batch per second.
[[nodiscard]] double samples_per_second(const ScalingPoint& point);
// The share of exposed communication in the step, for the class that computes longest: the other classes wait
// for it.
[[nodiscard]] double exposed_share(const Forecast& forecast);
// Samples per second and GPU, relative to the first point of the series.
[[nodiscard]] double scaling_efficiency(const ScalingPoint& first, const ScalingPoint& point);

// The series as one JSON object (docs/schemas/scaling_series.json), its schema, and the document. `series`
// must not be empty.
[[nodiscard]] std::string scaling_series_json(std::span<const ScalingPoint> series);
[[nodiscard]] std::string scaling_series_schema();
[[nodiscard]] ReportDocument scaling_series_document(std::span<const ScalingPoint> series,
                                                     Shown made_for = Shown::everywhere);

// One recorded step, forecast at another batch.
struct BatchForecast {
  std::int64_t batch_per_rank = 0;
  Forecast forecast;
};

// The largest batch per rank that fits into memory. Activations are scaled in proportion to the batch of the
// last forecast; other memory stays the same. Nothing if the memory is unknown. `series`: at least one, in
// ascending order.
[[nodiscard]] std::optional<std::int64_t> largest_batch(std::span<const BatchForecast> series);

// The series as one JSON object (docs/schemas/batch_series.json), its schema, and the document. `series`: at
// least one, in ascending order.
[[nodiscard]] std::string batch_series_json(std::span<const BatchForecast> series);
[[nodiscard]] std::string batch_series_schema();
[[nodiscard]] ReportDocument batch_series_document(std::span<const BatchForecast> series,
                                                   Shown made_for = Shown::everywhere);

}  // namespace stepcast
