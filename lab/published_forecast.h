// Forecasts by the two published methods that ours are compared with, in the form of ours: of recorded ranks by
// Algorithm 1 (published_algorithm.h), of a described step by a closed formula (published_composition.h).
//
//   STEPCAST_ASSIGN(const Forecast forecast, published_trace_forecast({.places = {"traces/dlrm8"}}));
//   forecast_text(forecast)      // its notes hold the recorded step and how far the forecast is off
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "stepcast/analyze/forecast.h"
#include "stepcast/api/stepcast.h"
#include "stepcast/base/result.h"

namespace stepcast {

struct PublishedTraceRequest {
  // Profiler traces with the execution traces of the same ranks, or execution traces alone.
  std::vector<std::filesystem::path> places;
  // Whose models give kernel times, and whose overheads serve execution traces alone; empty: the shipped platform
  // with the GPU that recorded.
  std::string platform{};
  // Profiler traces of the same kind of host, whose overheads serve execution traces alone instead.
  std::vector<std::filesystem::path> overheads_from{};
  std::optional<std::int64_t> step{};  // N of ProfilerStep#N; otherwise the last that all ranks have
  ProgressReport progress{};           // while traces are read
};

// Algorithm 1 of Lin et al. (TPDS 2024). Where there are profiler traces, overheads are theirs by the published rules.
// It gives no band. Errors: traces of another kind, profiler traces without execution traces, no platform.
[[nodiscard]] Result<Forecast> published_trace_forecast(const PublishedTraceRequest& request);

// Our forecast of a described step, with the same prices put together as Zhang et al. (HiPC 2025) do in
// Forecast::published. Errors: those of Session::predict and published_components(); a layout that is left open.
[[nodiscard]] Result<Forecast> published_step_forecast(const PredictRequest& request);

}  // namespace stepcast
