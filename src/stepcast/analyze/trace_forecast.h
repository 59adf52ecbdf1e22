// Makes the Forecast of a step that was predicted from recorded ranks, with its memory, and that of a
// training log.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "stepcast/analyze/critical_path.h"
#include "stepcast/analyze/flat_program.h"
#include "stepcast/analyze/forecast.h"
#include "stepcast/analyze/make_forecast.h"
#include "stepcast/analyze/task_times.h"
#include "stepcast/logs/logged_run.h"
#include "stepcast/platform/platform.h"
#include "stepcast/retrace/added_recomputation.h"
#include "stepcast/retrace/trace_prediction.h"
#include "stepcast/trace/execution_trace.h"

namespace stepcast {

// The prediction, and what the traces do not say.
struct TraceForecastInput {
  const TracePrediction& prediction;
  const TracePredictionOptions& options;
  std::string traces;  // the given path: a folder, or the first file
  // The work of all ranks per step, if known.
  std::optional<double> samples_per_step{}, tokens_per_step{};
};

// One class per recorded rank. A note gives the recorded step and the change relative to it.
[[nodiscard]] Forecast trace_forecast(const TraceForecastInput& input, const FlatProgram& flat,
                                      const TaskTimes& times, const ForecastOptions& options = {});

// The options for the critical path to the end of the predicted step. In a steady series of steps: to the end
// of the work of the stream that determines the period.
[[nodiscard]] CriticalPathOptions path_of_step(const TracePrediction& prediction, const FlatProgram& flat);

// A training log as a Forecast of kind "log", for comparison with predictions and replays. Step time: the
// median step, with p10 and p90 over the steps. There are no rank classes, since logs do not show where the
// time goes. Layout, model and number of GPUs are filled in if the log states them, memory if it states the
// peak.
[[nodiscard]] Forecast log_forecast(const LoggedRun& run);

// Fills in forecast.memory and its notes from the tensors in the execution traces, [rank class]. Activations
// are scaled by `batch_ratio`, relative to the recorded batch. Activations inside the blocks in `recomputed`,
// [rank class], are left out, since they are recomputed. The rank with the largest total decides. `machine`:
// the platform with the GPU; null if unknown, and then only a note is added.
void add_recorded_memory(std::span<const std::optional<ExecutionTrace>> traces, const Platform* machine,
                         double batch_ratio, const std::vector<std::vector<SequenceRange>>& recomputed,
                         Forecast& forecast);

}  // namespace stepcast
