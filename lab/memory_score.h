// Peaks of memory that runs report against those that are forecast.
#pragma once

#include <vector>

#include "lab/run_platforms.h"

namespace stepcast {

// Runs whose note says a peak ("memory 67.0 GiB"), by set, in GiB. Frameworks report what their allocator took from
// the device: without the context and without the buffers of the collective library
// (StageMemory::in_allocator). No sets where no run says it.
[[nodiscard]] TestScore score_memory(const std::vector<PredictedRun>& runs);

}  // namespace stepcast
