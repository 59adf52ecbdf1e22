// Reads a step from any file that contains one: the JSON output of predict, replay and inspect, a report in
// HTML, or a training log.
//
//   STEPCAST_ASSIGN(const Forecast a, read_result("forecast.json"));
//   STEPCAST_ASSIGN(const Forecast b, read_result("train.log"));
//   compare(a, b).verdict
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "stepcast/analyze/forecast.h"
#include "stepcast/base/result.h"

namespace stepcast {

// Additional information for reading.
struct ResultReadOptions {
  // The forecast that the result is compared with; may be null. Gives the work per step if a log prints only
  // rates.
  const Forecast* beside = nullptr;
};

// Reads a step. From a replay: the simulated step. From the forecast of a log: the forecast. From `inspect
// --json` of a log: the logged times. From HTML: the JSON in <script type="application/json"
// id="stepcast-json">. Errors: an unreadable file, JSON with another schema or without a step, HTML without
// that element, the errors of read_training_log(), a log from which no step time follows.
[[nodiscard]] Result<Forecast> read_result(const std::filesystem::path& file,
                                           const ResultReadOptions& options = {});
// The same for a document in memory, JSON or HTML. `name`: for errors.
[[nodiscard]] Result<Forecast> parse_result(std::string_view text, const std::string& name);
// The same for text from a pipe, which can only be read once. `text` may also be a log.
[[nodiscard]] Result<Forecast> parse_result_or_log(std::string_view text, const std::string& name,
                                                   const ResultReadOptions& options = {});

}  // namespace stepcast
