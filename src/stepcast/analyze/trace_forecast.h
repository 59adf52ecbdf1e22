// The Forecast of a step that was predicted from recorded ranks, with its memory, and that of a training log.
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

// What decides the predicted step: the way to its end, or through the work of the stream that sets the period.
[[nodiscard]] CriticalPathOptions path_of_step(const TracePrediction& prediction, const FlatProgram& flat);

// A training log as a Forecast of kind "log": what predictions and replays compare with.
// Step time: the median of the steps, p10 and p90 those of the steps. No rank classes: a log does not tell where the
// time goes. Layout, model and GPUs where the log tells them; memory where it tells the peak.
[[nodiscard]] Forecast log_forecast(const LoggedRun& run);

// Into forecast.memory, and its notes: from the tensors of the execution traces, [rank class], with activations of
// `batch_ratio` times the recorded batch and without those that the blocks of layers in `recomputed`, [rank class], make
// again. The rank counts that takes most. `machine`: whose GPU; null: not known, and then nothing is.
void add_recorded_memory(std::span<const std::optional<ExecutionTrace>> traces, const Platform* machine,
                         double batch_ratio, const std::vector<std::vector<SequenceRange>>& recomputed,
                         Forecast& forecast);

}  // namespace stepcast
