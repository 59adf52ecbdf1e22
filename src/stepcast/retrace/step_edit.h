// What is changed of a recorded step before it is simulated: one list of edits, in the order in which they are made.
//
//   for (const StepEdit& edit : step_edits()) edit.name, edit.what
//   STEPCAST_ASSIGN(const EditedStep step, edited_step(std::move(recorded), options));
//   step.recorded, step.prices.costs, step.notes
//
// An edit of a stage finds everything that earlier stages leave. The list is sorted by stage, which the compiler checks.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "stepcast/base/result.h"
#include "stepcast/predict/step_prices.h"
#include "stepcast/rebuild/recorded_program.h"
#include "stepcast/retrace/prediction_options.h"
#include "stepcast/retrace/recorded_prices.h"

namespace stepcast {

enum class EditStage : std::uint8_t {
  structure,   // which tasks there are, and what waits for what: durations are the recorded ones
  gpu_times,   // of kernels, copies and transfers
  host_times,  // of CPU threads
  ranks,       // differences between ranks
};

// A step while it is edited.
struct EditedStep {
  EditedStep(RecordedProgram program, const TracePredictionOptions& options);

  RecordedProgram recorded;
  // Models of the platform that is predicted, with what-if factors, and of the machine that recorded; null where there
  // is none.
  std::unique_ptr<StepPricer> target, origin;
  RecordedPricing pricing;
  RecordedPrices prices{Costs{Program{}}, Costs{Program{}}, Costs{Program{}}, {}};  // from gpu_times on
  std::vector<std::vector<SequenceRange>> recomputed;  // [rank class] blocks of layers that run twice
  // How far host times that were learned from other jobs are off this one's (HostOverheads::band()).
  std::optional<double> host_band{};
  std::vector<std::string> notes;  // what was done, for a person
};

struct StepEdit {
  std::string_view name;  // lower case, one word or several with hyphens
  std::string_view what;  // a verb phrase
  EditStage stage;
  // True where the times of GPU work, also without a platform, are no longer the recorded ones.
  bool changes_gpu_times;
  bool (*asked)(const TracePredictionOptions& options);
  // What the options and the record lack for it.
  Status (*check)(const TracePredictionOptions& options, const RecordedProgram& recorded);
  Status (*apply)(const TracePredictionOptions& options, EditedStep& step);
};

// In the order in which they are made.
[[nodiscard]] std::span<const StepEdit> step_edits();

// True if an edit that was asked for changes the times of GPU work beyond what a platform does.
[[nodiscard]] bool changes_gpu_times(const TracePredictionOptions& options);

// Errors: the first edit that lacks something, else those of the edits that were asked for.
[[nodiscard]] Result<EditedStep> edited_step(RecordedProgram recorded, const TracePredictionOptions& options);

}  // namespace stepcast
