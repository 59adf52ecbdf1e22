// The error of a replay without changes against the record. Every prediction from that record inherits it.
//
//   STEPCAST_ASSIGN(const RecordedBase base, recorded_base(recorded));
//   base.error()      // -0.02: the replay is 2 % shorter than the record
//   base.warning      // the warning that a replay prints
#pragma once

#include <optional>
#include <string>

#include "stepcast/base/result.h"
#include "stepcast/rebuild/recorded_program.h"
#include "stepcast/retrace/prediction_options.h"

namespace stepcast {

// Replay of a record without any change, in us.
struct RecordedBase {
  double measured_us = 0;  // the longest recorded step of all ranks; 0: the record has no measured step
  double answered_us = 0;  // the prediction without any change
  double repaired = 0;     // share of the recorded time that was impossible and removed (RepairedTimes)
  std::optional<std::string> warning{};  // far_off_warning() of the replay

  // (answered - measured) / measured; 0 if nothing was measured.
  [[nodiscard]] double error() const { return measured_us > 0 ? answered_us / measured_us - 1 : 0; }
  // Half-width of a band around the answer that includes the measured step, as a share of the answer.
  [[nodiscard]] double band() const;
};

// True for hypothetical changes of the recorded step: factors, other overlap, no stragglers.
[[nodiscard]] bool rests_on_what_if(const TracePredictionOptions& options);
// True for a question without any change: the answer is the measured step.
[[nodiscard]] bool asks_as_recorded(const TracePredictionOptions& options);

// Errors: those of score_replay() and StepOrbit::period().
[[nodiscard]] Result<RecordedBase> recorded_base(const RecordedProgram& recorded);

// Error: the question changes the step, its unchanged replay prints a warning and is off by more than kMostBaseError.
[[nodiscard]] Status check_base(const RecordedBase& base, const TracePredictionOptions& options);

}  // namespace stepcast
