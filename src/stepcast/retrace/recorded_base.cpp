#include "stepcast/retrace/recorded_base.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "stepcast/predict/replay.h"
#include "stepcast/predict/step_orbit.h"
#include "stepcast/retrace/step_edit.h"

namespace stepcast {
namespace {

// Largest error of the unchanged replay, as a share of the recorded step, at which changes are still predicted. Assumed.
constexpr double kMostBaseError = 0.5;

}  // namespace

double RecordedBase::band() const {
  if (!(measured_us > 0) || !(answered_us > 0)) return 0;
  return std::abs(measured_us / answered_us - 1);
}

bool rests_on_what_if(const TracePredictionOptions& options) {
  return options.assumptions != StepAssumptions{} || options.median_ranks || options.barrier ||
         options.overlap != OverlapChange::as_recorded || options.recompute != RecomputedPart::none;
}

bool asks_as_recorded(const TracePredictionOptions& options) {
  return (options.platform == nullptr || options.price_unrecorded) &&
         options.kernels == KernelTimeSource::recorded && options.host == HostTimeSource::recorded &&
         !rests_on_what_if(options) && !changes_gpu_times(options);
}

Result<RecordedBase> recorded_base(const RecordedProgram& recorded) {
  RecordedBase base;
  for (const RecordedStepFacts& facts : recorded.facts) {
    base.measured_us = std::max(base.measured_us, facts.step_us.length_us());
    base.repaired = std::max(base.repaired, facts.repaired_share);
  }
  if (recorded.is_dry_run || !(base.measured_us > 0)) return RecordedBase{};
  const Costs costs{recorded.program};
  STEPCAST_ASSIGN(const ReplayScores scores, score_replay(recorded, costs));
  base.warning = far_off_warning(recorded, scores);
  STEPCAST_ASSIGN(const StepPeriod period, StepOrbit{recorded}.period(costs, scores.timeline));
  base.answered_us = period.us;
  return base;
}

Status check_base(const RecordedBase& base, const TracePredictionOptions& options) {
  // Without a warning the replay is correct and the step in a sequence differs from the single step: the host runs ahead of its
  // GPU, as at the beginning of a recording.
  if (asks_as_recorded(options) || !base.warning || std::abs(base.error()) <= kMostBaseError) return Ok{};
  return Error{"the replay of this step differs too much from the record to predict changes"}
      .found(fmt::format("{:.3f} ms without a change, recorded {:.3f} ms ({:+.1f} %)",
                         base.answered_us * 1e-3, base.measured_us * 1e-3, 100 * base.error()))
      .expected(fmt::format("at most {:.0f} % difference", 100 * kMostBaseError))
      .advice("choose another step with --step, or find the cause with `stepcast replay`");
}

}  // namespace stepcast
