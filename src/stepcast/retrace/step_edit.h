// The list of edits that turn a recorded step into the predicted one, in the order of their application.
//
//   for (const StepEdit& edit : step_edits()) edit.name, edit.what
//   STEPCAST_ASSIGN(const EditedStep step, edited_step(std::move(recorded), options));
//   step.recorded, step.prices.costs, step.notes
//
// Edits of one stage see the results of all earlier stages. The list is sorted by stage, checked at compile time.
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

// What an edit changes.
enum class EditStage : std::uint8_t {
  structure,   // tasks and dependencies; durations are the recorded ones
  gpu_times,   // of kernels, copies and transfers
  host_times,  // of CPU threads
  ranks,       // differences between ranks
};

// A step while it is edited.
struct EditedStep {
  EditedStep(RecordedProgram program, const TracePredictionOptions& options);

  RecordedProgram recorded;
  // Models of the predicted platform (with what-if factors) and of the machine that recorded; null if not given.
  std::unique_ptr<StepPricer> target, origin;
  RecordedPricing pricing;
  RecordedPrices prices{
      Costs{Program{}}, Costs{Program{}}, Costs{Program{}}, {}};  // set from stage gpu_times on
  std::vector<std::vector<SequenceRange>> recomputed;  // [rank class] blocks of layers that run twice
  // Error of host times learned from other jobs, for this job (HostOverheads::band()).
  std::optional<double> host_band{};
  std::vector<std::string> notes;  // what was done, for the user
};

// One entry of the list.
struct StepEdit {
  std::string_view name;  // lower case, words separated by hyphens
  std::string_view what;  // a verb phrase for the user
  EditStage stage;
  // True if the edit changes times of GPU work even without another platform.
  bool changes_gpu_times;
  // Whether the options ask for this edit.
  bool (*asked)(const TracePredictionOptions& options);
  // Error: an input the edit needs is missing in the options or the record.
  Status (*check)(const TracePredictionOptions& options, const RecordedProgram& recorded);
  Status (*apply)(const TracePredictionOptions& options, EditedStep& step);
};

// All edits in the order of application.
[[nodiscard]] std::span<const StepEdit> step_edits();

// True if a requested edit changes times of GPU work for reasons other than the platform.
[[nodiscard]] bool changes_gpu_times(const TracePredictionOptions& options);

// Applies all requested edits. Errors: an edit lacks an input, else the errors of the edits.
[[nodiscard]] Result<EditedStep> edited_step(RecordedProgram recorded, const TracePredictionOptions& options);

}  // namespace stepcast
