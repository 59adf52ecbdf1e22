// Scores the models of collectives against measured times (files of collective_measurements.h, or folders of
// them).
//
//   held_out_sizes     (primary) every octave of message sizes of a curve in turn is left out, both ends too,
//                      with all repeats of its sizes; the curve is fitted to the rest and scored on the octave
//   published_form     our form against the published sigmoid on the same folds, form against form, no knots;
//                      the rows are of ours, the sigmoid stands in extra keys
//   dense_smooth       the curves of held_out_sizes with 200 sizes or more that lie on lines between their
//                      neighbours: within 0.2 % (median) and 2 % (90th percentile)
//   unseen_ranks       fitted on 2 and 4 ranks of a node, scored on 8: NVSwitch; _other: PCIe, mixed, not stated
//   unseen_nodes       fitted on fewer nodes, scored on the most: one-GPU nodes; _many_gpus: others, from 1 MB
//   synthetic_3pct     curves that are known, drawn with 3 % noise: start-up, peak bandwidth and curve
//   unseen_system...   machines and whole generations left out (unseen_system.h); also those of the later measurements
//                      in ../modern/collectives beside the folder
//   shipped            (protocol shipped) the platform file that ships, on rows it was not fitted on
#pragma once

#include <filesystem>

#include "stepcast/base/result.h"

#include "lab/suite.h"

namespace stepcast {

[[nodiscard]] Result<SuiteResult> validate_collectives(const std::filesystem::path& data,
                                                       const SuiteOptions& options = {});

[[nodiscard]] Suite collectives_suite();

}  // namespace stepcast
