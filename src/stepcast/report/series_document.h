// A series of forecasts as a person reads it (report/document.h): several batches of recorded steps, or several numbers of GPUs.
#pragma once

#include <span>

#include "stepcast/report/document.h"
#include "stepcast/report/scaling_series.h"

namespace stepcast {

// `series`: at least one, as --json takes it; batches ascending.
[[nodiscard]] ReportDocument batch_series_document(std::span<const BatchForecast> series,
                                                   Shown made_for = Shown::everywhere);
[[nodiscard]] ReportDocument scaling_series_document(std::span<const ScalingPoint> series,
                                                     Shown made_for = Shown::everywhere);

}  // namespace stepcast
