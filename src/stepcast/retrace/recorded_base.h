// How far a prediction without any change is off the record: what every prediction from that record inherits.
//
//   STEPCAST_ASSIGN(const RecordedBase base, recorded_base(recorded));
//   base.error()      // -0.02: the record is answered 2 % too short
//   base.warning      // the sentence that a replay prints
#pragma once

#include <optional>
#include <string>

#include "stepcast/base/result.h"
#include "stepcast/rebuild/recorded_program.h"
#include "stepcast/retrace/prediction_options.h"

namespace stepcast {

struct RecordedBase {
  double measured_us = 0;  // the longest recorded step of all ranks; 0: the record has no measured step
  double answered_us = 0;  // what a prediction without any change answers
  double repaired = 0;     // share of the recorded time that was impossible and is cut (RepairedTimes)
  std::optional<std::string> warning{};  // far_off_warning() of the replay

  // (answered - measured) / measured; 0 where nothing was measured.
  [[nodiscard]] double error() const { return measured_us > 0 ? answered_us / measured_us - 1 : 0; }
  // Half-width of the band around the answer that has the record in it, as a share of the answer.
  [[nodiscard]] double band() const;
};

// True for a question that supposes something about the recorded step: factors, other overlap, no stragglers.
[[nodiscard]] bool rests_on_what_if(const TracePredictionOptions& options);
// True for a question that changes nothing of the record: it asks what was measured.
[[nodiscard]] bool asks_as_recorded(const TracePredictionOptions& options);

// Errors: those of score_replay() and StepOrbit::period().
[[nodiscard]] Result<RecordedBase> recorded_base(const RecordedProgram& recorded);

// Error: the question changes a step whose replay warns, and whose unchanged answer is off the record by more than
// kMostBaseError.
[[nodiscard]] Status check_base(const RecordedBase& base, const TracePredictionOptions& options);

}  // namespace stepcast
