// The forecast of a step of post-training as text, page and JSON.
#pragma once

#include <string>

#include "stepcast/report/document.h"
#include "stepcast/rollout/rl_forecast.h"

namespace stepcast {

// The answer as a document.
[[nodiscard]] ReportDocument rl_document(const RlForecast& f);
// The answer as JSON, stepcast.rl_forecast/1 (docs/schemas/rl_forecast.json, docs/json.md), and its schema.
[[nodiscard]] std::string rl_json(const RlForecast& answer);
[[nodiscard]] std::string rl_schema();
// How GPUs are divided: "off-policy: 16 generate, 16 train, engines of tp2".
[[nodiscard]] std::string rl_split_text(const RlSplit& split);

}  // namespace stepcast
