// Prints how much of its time a run trains beside simulated and published figures (goodput.csv). Nothing is fitted to them,
// and no target rests on them: publications rarely state what their share hangs on.
//
//   exact             (primary) share of 200 random jobs: simulated event by event, and by the closed form; percent
//   llama_54_days     54 days of 16,384 H100, 419 interruptions, a write of 8 s: the share by the downtime of each, in extra
//                     keys, beside the published "above 90"
//   published_shares  rows that state a share and GPUs or the time between interruptions, by default rates and a downtime of
//                     15 min
//   by_people         the same where people restart, 6 times as long; where a row states a share of manual restarts, that
//   constant          the mean of the other rows
//   checkpoint        size from the model; TB
#pragma once

#include <filesystem>

#include "stepcast/base/result.h"

#include "lab/suite.h"

namespace stepcast {

// `data`: a folder with goodput.csv.
[[nodiscard]] Result<SuiteResult> validate_goodput(const std::filesystem::path& data);

[[nodiscard]] Suite goodput_suite();

}  // namespace stepcast
