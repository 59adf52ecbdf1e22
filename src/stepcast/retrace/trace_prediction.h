// Predicts the step of recorded ranks on another GPU, with other links, a faster host or without stragglers.
//
//   TracePredictionOptions how{.platform = &mi300x, .recorded_on = &h100, .kernels = KernelTimeSource::ratio};
//   STEPCAST_ASSIGN(const TracePrediction p, predict_trace(set.inputs(), how));
//   p.step.time, p.step.p10, p.step.p90        // of the rank with the longest step
//   p.ranks[3].step.simulated_us               // of one rank, next to its measured_us
//
// Structure, order and learned delays come from the record (trace/recorded_program.h), GPU times from recorded_prices.h, host
// times from host_prices.h. step_edit.h lists all edits of a step and their order.
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

// A prediction with everything needed to explain it.
struct TracePrediction : ReplayScores {
  RecordedProgram recorded;
  Costs costs{recorded.program};
  Coverage coverage;
  Estimate step;                                       // the longest step of all ranks
  RecordedBase base;                                   // error of the unchanged replay, part of the band
  std::vector<std::vector<SequenceRange>> recomputed;  // [rank class] blocks of layers that run twice
  // What was done and which causes matter, for the user.
  std::vector<std::string> notes;
  // The step in a sequence of equal steps; absent if it equals the single step.
  std::optional<SettledStep> settled;
  // The timeline that `step` measures.
  [[nodiscard]] const Timeline& step_timeline() const { return settled ? settled->timeline : timeline; }
  // [rank class] the interval of the step in step_timeline().
  [[nodiscard]] std::vector<Interval> step_windows() const;
};

// `base`: recorded_base() of the record if the caller has it; null: computed here. Errors: those of check_base(),
// edited_step() and score_replay().
[[nodiscard]] Result<TracePrediction> predict_recorded(RecordedProgram recorded,
                                                       const TracePredictionOptions& options,
                                                       const RecordedBase* base = nullptr);

// Predicts from two recordings of the same ranks at the batches `options.change.batch->recorded` and `options.second_batch`
// by interpolation (batch_pair.h). Errors: no wanted batch; those of between_batches() and predict_recorded().
[[nodiscard]] Result<TracePrediction> predict_between(RecordedProgram first, RecordedProgram second,
                                                      const TracePredictionOptions& options);

// Errors: those of rebuild_program() and predict_recorded().
[[nodiscard]] Result<TracePrediction> predict_trace(std::span<const RecordedInput> inputs,
                                                    const TracePredictionOptions& options);

}  // namespace stepcast
