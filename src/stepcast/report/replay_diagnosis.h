// What holds a replayed step back, for a performance engineer: who the others wait for, operators that differ
// across ranks, operators that the GPU waits for, what links and GPUs achieve.
#pragma once

#include <string>

#include "stepcast/analyze/replay_analysis.h"
#include "stepcast/base/json_writer.h"

namespace stepcast {

// Tables of a replay's text; `verbose`: longer ones, and those by rank and class.
[[nodiscard]] std::string diagnosis_text(const ReplayAnalysis& analysis, bool verbose);

// "diagnosis": an object of stepcast.replay (docs/schemas/replay.json).
void write_diagnosis(JsonWriter& json, const ReplayAnalysis& analysis);

}  // namespace stepcast
