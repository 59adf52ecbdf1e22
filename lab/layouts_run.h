// Whether the layouts that people ran are among the best of our search: layouts that experts tuned by hand, as published
// beside their step times.
//
// Of every family of runs (ranking_score.h: model, GPUs, type, batch) the fastest measured one counts. Its layout is
// priced as it ran, and so is every layout of the search, with the software of that run: what both do alike, they do
// alike here, too. A row has our best as `predicted` and the run's layout as `measured`, both forecasts, in ms.
#pragma once

#include <vector>

#include "lab/run_platforms.h"
#include "lab/suite.h"

namespace stepcast {

// "layouts_run", all families in one set, and "layouts_run_by_set". Extras, in percent of the families: `tied_or_within_2_percent`
// (the run cannot be told from our best, or its forecast is at most 2 % behind), `within_2`, `within_7`; `families_n`.
// `shares` of a row says what ours changes. What the space does not hold is left out: encoders, adapters, models whose
// GPU nobody stated, families without a layout that fits by our forecast (named in `skipped`).
[[nodiscard]] std::vector<TestScore> score_layouts_run(const std::vector<PredictedRun>& runs,
                                                       RunPlatforms& platforms, unsigned threads,
                                                       std::vector<Skipped>& skipped);

}  // namespace stepcast
