// Peaks of memory that runs report against those that are forecast.
#pragma once

#include <filesystem>
#include <vector>

#include "stepcast/base/result.h"

#include "lab/run_platforms.h"
#include "lab/suite.h"

namespace stepcast {

// Runs whose note says a peak ("memory 67.0 GiB"), by set, in GiB. Frameworks report what their allocator took from
// the device: without the context and without the buffers of the collective library
// (StageMemory::in_allocator). No sets where no run says it.
[[nodiscard]] TestScore score_memory(const std::vector<PredictedRun>& runs);
// Runs that ran are to fit: by set the share that does (`fits_pct`) and the number that is said not to
// (`too_big_n`). Those are named in `skipped` with what they are said to take.
[[nodiscard]] TestScore score_runs_that_ran(const std::vector<PredictedRun>& runs, RunPlatforms& platforms,
                                            std::vector<Skipped>& skipped);

// Measured steps of language models against the composition of Zhang et al. (published_forecast.h) from our prices: the
// runs that it has a formula for; `ours_mape` of a set is the error of our own forecasts of the same runs.
[[nodiscard]] TestScore score_published_composition(const std::vector<PredictedRun>& runs,
                                                    RunPlatforms& platforms);

// Peaks of allocated memory that tables of $STEPCAST_DATA/field state, against those forecast, in GiB. A set for each table of `folder`: megatron_lines.csv, where the last rank writes what it allocated, and ab_pairs.csv, both
// sides of the pairs of Megatron Bridge whose layout and batch are printed, the fullest stage. Settings in words, not
// flags, are left out, and so is what is not forecast.
[[nodiscard]] Result<std::vector<SetScore>> stated_peaks(const std::filesystem::path& folder);

}  // namespace stepcast
