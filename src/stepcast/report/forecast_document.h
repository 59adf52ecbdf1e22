// A Forecast as a person reads it (report/document.h): what it says, where the time goes, memory, schedule, sensitivity, and
// what every number rests on.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "stepcast/analyze/forecast.h"
#include "stepcast/analyze/step_picture.h"
#include "stepcast/report/document.h"

namespace stepcast {

// What a forecast alone does not hold, null where it is not there; and what a terminal shows of it.
struct ForecastIllustrations {
  const Sensitivity* sensitivity = nullptr;
  const StepPictures* pictures = nullptr;
  Shown made_for = Shown::everywhere;
  bool explains = false, prints_sensitivity = false;  // in a terminal, too
};

[[nodiscard]] ReportDocument forecast_document(const Forecast& forecast,
                                               const ForecastIllustrations& illustrations = {});
// The same for a terminal: what was asked, the step time with its band, where it goes, throughput, memory, cost of a
// training, notes.
[[nodiscard]] std::string forecast_text(const Forecast& forecast);

// One sentence: how long, whether it fits, what costs most.
[[nodiscard]] std::string forecast_verdict(const Forecast& forecast);
// What was asked, line by line: model and machine, layout, software.
[[nodiscard]] std::vector<std::string> forecast_subject(const Forecast& forecast);

// Which resource a step should have more of: the section of a forecast, and one JSON object, docs/schemas/sensitivity.json.
void add_sensitivity(ReportDocument& document, const Sensitivity& sensitivity, Shown on);
[[nodiscard]] std::string sensitivity_json(const Sensitivity& answer);
[[nodiscard]] std::string sensitivity_schema();

// What is said of throughput and of a training; empty where nothing is known.
[[nodiscard]] std::string throughput_text(const Forecast& forecast);
[[nodiscard]] std::string training_text(const Forecast& forecast);

// A part of ForecastClass::parts() in the words of the reports: "idle: pipeline" is "idle: pipeline bubble".
[[nodiscard]] std::string part_text(std::string_view key);

}  // namespace stepcast
