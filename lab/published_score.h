// Measured steps of language models against the composition of Zhang et al. (published_composition.h) from our prices.
#pragma once

#include <vector>

#include "lab/run_platforms.h"
#include "lab/suite.h"

namespace stepcast {

// The runs that it has a formula for; `ours_mape` of a set is the error of our own forecasts of the same runs.
[[nodiscard]] TestScore score_published_composition(const std::vector<PredictedRun>& runs,
                                                    RunPlatforms& platforms);

}  // namespace stepcast
