// Writes a step of post-training as a timeline, in the formats of report/perfetto.h.
//
// There is one process per pool of GPUs: one on-policy, two off-policy. Its parts follow one another in the order of RlParts, and
// parts without time are left out. The faster pool is idle until the transfer of the weights.
#pragma once

#include <string>

#include "stepcast/base/output_file.h"
#include "stepcast/base/result.h"
#include "stepcast/rollout/rl_forecast.h"

namespace stepcast {

// The document as JSON text.
[[nodiscard]] std::string to_perfetto(const RlForecast& forecast);

// The format depends on the name of the file, as with other timelines.
[[nodiscard]] Status write_perfetto(const OutputFile& file, const RlForecast& forecast);

}  // namespace stepcast
