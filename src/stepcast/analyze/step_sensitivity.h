// Sensitivities of steps that were predicted: of a described one, and of recorded ranks.
#pragma once

#include "stepcast/analyze/flat_program.h"
#include "stepcast/analyze/forecast.h"
#include "stepcast/analyze/task_times.h"
#include "stepcast/base/result.h"
#include "stepcast/predict/dlrm_step.h"
#include "stepcast/predict/predicted_step.h"
#include "stepcast/retrace/trace_prediction.h"

namespace stepcast {

[[nodiscard]] Result<Sensitivity> step_sensitivity(const PredictedStep& step);

// Of the sharding that `steps` priced last.
[[nodiscard]] Result<Sensitivity> dlrm_sensitivity(const DlrmStepModel& steps);

// Of the longest step of all ranks; links between nodes are those of a platform with so many GPUs in a node.
[[nodiscard]] Result<Sensitivity> trace_sensitivity(const TracePrediction& prediction,
                                                    const TracePredictionOptions& options,
                                                    const FlatProgram& flat, const TaskTimes& times);

// Adds the row of the batch, by the difference between the steps of two batches.
void add_batch(Sensitivity& sensitive, double batch, double larger_batch, double step_ms,
               double larger_step_ms);

}  // namespace stepcast
