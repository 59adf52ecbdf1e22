// A Forecast as a document (report/document.h): the result, where the time goes, memory, schedule,
// sensitivity, and the source of each number.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "stepcast/analyze/forecast.h"
#include "stepcast/analyze/step_picture.h"
#include "stepcast/report/document.h"

namespace stepcast {

// What a forecast does not contain itself (null if it does not exist), and what a terminal shows of it.
struct ForecastIllustrations {
  const Sensitivity* sensitivity = nullptr;
  const StepPictures* pictures = nullptr;
  Shown made_for = Shown::everywhere;
  // Also print the operations of a layer, or the sensitivity, in a terminal.
  bool explains = false, prints_sensitivity = false;
};

// The forecast as a document for terminals and pages.
[[nodiscard]] ReportDocument forecast_document(const Forecast& forecast,
                                               const ForecastIllustrations& illustrations = {});
// The document for a terminal: the question, the step time with its interval, where the time goes,
// throughput, memory, cost of a training, notes.
[[nodiscard]] std::string forecast_text(const Forecast& forecast);

// One sentence: the step time, whether it fits into memory, what costs most.
[[nodiscard]] std::string forecast_verdict(const Forecast& forecast);
// The question, line by line: model and machine, layout, software.
[[nodiscard]] std::vector<std::string> forecast_subject(const Forecast& forecast);

// The sensitivity to faster resources: a section of a forecast's document, one JSON object
// (docs/schemas/sensitivity.json), and its schema.
void add_sensitivity(ReportDocument& document, const Sensitivity& sensitivity, Shown on);
[[nodiscard]] std::string sensitivity_json(const Sensitivity& answer);
[[nodiscard]] std::string sensitivity_schema();

// The lines about throughput and about a training; empty if nothing is known.
[[nodiscard]] std::string throughput_text(const Forecast& forecast);
[[nodiscard]] std::string training_text(const Forecast& forecast);

// A key of ForecastClass::parts() in the words of reports: "idle: pipeline" becomes "idle: pipeline bubble".
[[nodiscard]] std::string part_text(std::string_view key);

}  // namespace stepcast
