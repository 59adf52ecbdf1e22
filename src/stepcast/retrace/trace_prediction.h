// The step of recorded ranks under other circumstances: on another GPU, with other links or a faster host,
// without stragglers.
//
//   TracePredictionOptions how{.platform = &mi300x, .recorded_on = &h100, .kernels = KernelTimeSource::ratio};
//   STEPCAST_ASSIGN(const TracePrediction p, predict_trace(set.inputs(), how));
//   p.step.time, p.step.p10, p.step.p90        // of the rank whose step is longest
//   p.ranks[3].step.simulated_us               // of one rank; measured_us beside it
//
// Structure, order and learned delays are those of the record (trace/recorded_program.h); the times of GPU work
// come from recorded_prices.h, those of the host from host_prices.h. What is changed of a step, and in which order, is
// the list of step_edit.h.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "stepcast/base/interval.h"
#include "stepcast/base/result.h"
#include "stepcast/operation/estimate.h"
#include "stepcast/predict/coverage.h"
#include "stepcast/predict/replay.h"
#include "stepcast/predict/step_orbit.h"
#include "stepcast/rebuild/recorded_program.h"
#include "stepcast/retrace/prediction_options.h"
#include "stepcast/retrace/recorded_base.h"

namespace stepcast {

struct TracePrediction : ReplayScores {
  RecordedProgram recorded;
  Costs costs{recorded.program};
  Coverage coverage;
  Estimate step;                                       // longest step of all ranks
  RecordedBase base;                                   // what the record inherits to it
  std::vector<std::vector<SequenceRange>> recomputed;  // [rank class] blocks of layers that run twice
  std::vector<std::string> notes;
  // The step in a row of such steps, where that differs from the step alone.
  std::optional<SettledStep> settled;
  // What `step` is the length of: tasks and, for every rank class, the window.
  [[nodiscard]] const Timeline& step_timeline() const { return settled ? settled->timeline : timeline; }
  [[nodiscard]] std::vector<Interval> step_windows() const;
};

// `base`: recorded_base() of the record, where it is known. Errors: those of check_base(), edited_step() and score_replay().
[[nodiscard]] Result<TracePrediction> predict_recorded(RecordedProgram recorded,
                                                       const TracePredictionOptions& options,
                                                       const RecordedBase* base = nullptr);

// The same ranks recorded at two batches, `options.change.batch->recorded` and `options.second_batch`: what scales is what
// differs (batch_pair.h). Errors: no batch that is wanted; those of between_batches() and predict_recorded().
[[nodiscard]] Result<TracePrediction> predict_between(RecordedProgram first, RecordedProgram second,
                                                      const TracePredictionOptions& options);

// Errors: those of rebuild_program() and predict_recorded().
[[nodiscard]] Result<TracePrediction> predict_trace(std::span<const RecordedInput> inputs,
                                                    const TracePredictionOptions& options);

}  // namespace stepcast
