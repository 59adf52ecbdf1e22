// A step out of any file that holds one: what predict, replay and inspect print with --json, a report in HTML, the log
// of a training run.
//
//   STEPCAST_ASSIGN(const Forecast a, read_result("forecast.json"));
//   STEPCAST_ASSIGN(const Forecast b, read_result("train.log", {.beside = &a}));
//   compare(a, b).verdict
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "stepcast/analyze/forecast.h"
#include "stepcast/base/result.h"

namespace stepcast {

struct ResultReadOptions {
  // What it is compared with: how much work a step is, where a log tells rates alone. May be null.
  const Forecast* beside = nullptr;
};

// Of a replay the simulated step; of a forecast that came from a log the forecast; of `inspect --json` of a log the
// logged times. HTML: the JSON in its <script type="application/json" id="stepcast-json">. Errors: a file that cannot be
// read, JSON of another schema or without a step, HTML without such an element, what read_training_log() refuses, a log
// of which no step time follows.
[[nodiscard]] Result<Forecast> read_result(const std::filesystem::path& file,
                                           const ResultReadOptions& options = {});
// The same of a document in memory, JSON or HTML.
[[nodiscard]] Result<Forecast> parse_result(std::string_view text, const std::string& name);
// The same of what a pipe gave, which can be read once: `text` may be a log, too.
[[nodiscard]] Result<Forecast> parse_result_or_log(std::string_view text, const std::string& name,
                                                   const ResultReadOptions& options = {});

}  // namespace stepcast
