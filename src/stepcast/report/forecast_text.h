// A Forecast as a person reads it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "stepcast/analyze/forecast.h"

namespace stepcast {

// What was asked, the step time with its band, where it goes, throughput, memory, cost of a training, notes.
[[nodiscard]] std::string forecast_text(const Forecast& forecast);

// What was asked, line by line: model and machine, layout, software.
[[nodiscard]] std::vector<std::string> forecast_subject(const Forecast& forecast);

// The operations of every kind of layer, of embedding, head and update, as they were priced.
[[nodiscard]] std::string explained_text(const Forecast& forecast);

// The lines about throughput and a training that forecast_text() holds; empty where nothing is known.
[[nodiscard]] std::string throughput_text(const Forecast& forecast);
[[nodiscard]] std::string training_text(const Forecast& forecast);

// A part of ForecastClass::parts() in the words of the reports: "idle: pipeline" is "idle: pipeline bubble".
[[nodiscard]] std::string part_text(std::string_view key);

}  // namespace stepcast
