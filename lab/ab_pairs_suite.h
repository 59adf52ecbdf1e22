// Scores ratios of step times of published pairs of runs that differ in one setting (ab_pairs.csv).
//
//   ratio      (primary) time of B over time of A, both forecast; by kind of setting. right_percent: of the pairs whose
//              measured and forecast ratios lie on one side of 1, or both within 1 % of it
//   no_change  the trivial answer: always 1
//   memory     difference of the peaks, of that of A, in percent; where both are printed. Of what is allocated
//
// "shipped": nothing is fitted. Pairs that state neither batch nor length are forecast with the number of micro-batches
// whose interleaved run comes closest to that of the same table, which is not scored then. Pairs that lack GPUs or
// batch, or a model that is not known, are named.
#pragma once

#include <filesystem>

#include "stepcast/base/result.h"

#include "lab/suite.h"

namespace stepcast {

// `data`: a folder with ab_pairs.csv.
[[nodiscard]] Result<SuiteResult> validate_ab_pairs(const std::filesystem::path& data);

[[nodiscard]] Suite ab_pairs_suite();

}  // namespace stepcast
