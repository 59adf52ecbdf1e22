// The Forecast of a step that was predicted from recorded ranks.
#pragma once

#include <optional>
#include <string>

#include "stepcast/analyze/flat_program.h"
#include "stepcast/analyze/forecast.h"
#include "stepcast/analyze/make_forecast.h"
#include "stepcast/analyze/task_times.h"
#include "stepcast/retrace/trace_prediction.h"

namespace stepcast {

struct TraceForecastInput {
  const TracePrediction& prediction;
  const TracePredictionOptions& options;
  std::string traces;  // what was asked for: a folder, or the first file
  std::optional<double> samples_per_step{}, tokens_per_step{};  // of all ranks, where known
};

// One class per recorded rank. The measured step of the record stands in the notes: it is what changes are
// relative to.
[[nodiscard]] Forecast trace_forecast(const TraceForecastInput& input, const FlatProgram& flat,
                                      const TaskTimes& times, const ForecastOptions& options = {});

}  // namespace stepcast
