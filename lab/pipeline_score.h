// Steps of an operator-level timeline (trace/pipeline_timeline.h) against their recorded lengths.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

#include "stepcast/base/result.h"
#include "stepcast/predict/replay.h"

namespace stepcast {

struct PipelineStepScore {
  std::int64_t step = 0;
  // Launch delays as in the other half of the steps: of even positions for odd ones, and the other way round.
  TimePair delayed;
  // Without launch delays, against the publishers' own simulation without, where that stands beside
  // (`step_t_nodelay` of the file result-* beside timeline-*).
  std::optional<TimePair> without_delay;
};

// Every step of the file. Errors: those of read_pipeline_timeline().
[[nodiscard]] Result<std::vector<PipelineStepScore>> score_pipeline(const std::filesystem::path& timeline);

}  // namespace stepcast
