#include "stepcast/retrace/trace_prediction.h"

#include <utility>

#include "stepcast/cost/host_overheads.h"
#include "stepcast/retrace/batch_pair.h"
#include "stepcast/retrace/detail/block_edit.h"
#include "stepcast/retrace/prediction_band.h"
#include "stepcast/retrace/step_edit.h"

namespace stepcast {
namespace {

// True if an edit changes tasks or dependencies; it must then see the times at the wanted batch.
bool changes_structure(const TracePredictionOptions& options) {
  for (const StepEdit& edit : step_edits())
    if (edit.stage == EditStage::structure && edit.asked(options)) return true;
  return false;
}

}  // namespace

std::string_view to_string(HostTimeSource ground) {
  return ground == HostTimeSource::recorded ? "recorded" : "overheads";
}

std::vector<Interval> TracePrediction::step_windows() const {
  if (settled) return settled->windows;
  std::vector<Interval> windows;
  for (const ReplayedRank& rank : ranks) windows.push_back(rank.simulated_step);
  return windows;
}

Result<TracePrediction> predict_recorded(RecordedProgram recorded, const TracePredictionOptions& options,
                                         const RecordedBase* base) {
  TracePrediction result;
  if (base != nullptr) {
    result.base = *base;
  } else {
    STEPCAST_ASSIGN(result.base, recorded_base(recorded));
  }
  // The unchanged replay must match the record before its changes can be trusted.
  STEPCAST_TRY(check_base(result.base, options));
  STEPCAST_ASSIGN(EditedStep step, edited_step(std::move(recorded), options));
  { STEPCAST_ASSIGN(static_cast<ReplayScores&>(result), score_replay(step.recorded, step.prices.costs)); }
  STEPCAST_ASSIGN(RepeatedStep repeated, estimate_step(step, result, result.base, options, step.notes));
  result.step = repeated.time;
  result.settled = std::move(repeated.settled);
  result.recorded = std::move(step.recorded);
  result.costs = std::move(step.prices.costs);
  result.coverage = std::move(step.prices.coverage);
  result.recomputed = std::move(step.recomputed);
  result.notes = std::move(step.notes);
  return result;
}

Result<TracePrediction> predict_between(RecordedProgram first, RecordedProgram second,
                                        const TracePredictionOptions& options) {
  if (!options.change.batch) {
    return Error{"two recordings are for the prediction of another batch, but no batch is given"}.advice(
        "give one with --batch, or leave out --second-trace");
  }
  const std::int64_t wanted = options.change.batch->wanted;
  const BatchPair pair{&first, options.change.batch->recorded, &second, options.second_batch};
  // The recording with the nearer batch provides structure and host times.
  STEPCAST_ASSIGN(const Costs at_batch, between_batches(pair, wanted));
  RecordedProgram structure = std::move(&pair.nearer(wanted) == &first ? first : second);
  TracePredictionOptions between = options;
  if (!changes_structure(options)) {
    between.between_batches = &at_batch;
    // Structural edits copy durations, so the interpolated times become the recorded ones first.
    return predict_recorded(std::move(structure), between);
  }
  STEPCAST_ASSIGN(structure, detail::with_durations(std::move(structure), at_batch));
  // Durations are already those of the wanted batch, so it is no longer a change.
  between.change.batch.reset();
  STEPCAST_ASSIGN(TracePrediction result, predict_recorded(std::move(structure), between));
  result.notes.push_back(batch_pair_note(wanted, pair.first_batch, pair.second_batch));
  result.step.source = weaker(result.step.source, EstimateSource::fitted);
  return result;
}

Result<TracePrediction> predict_trace(std::span<const RecordedInput> inputs,
                                      const TracePredictionOptions& options) {
  STEPCAST_ASSIGN(RecordedProgram recorded, rebuild_program(inputs, options.rebuild));
  return predict_recorded(std::move(recorded), options);
}

}  // namespace stepcast
