// Trains regression trees and converts them to the form of model records.
#pragma once

#include <cstddef>
#include <span>

#include "stepcast/base/result.h"
#include "stepcast/cost/families/gradient_trees.h"

#include "calibrate/boosting/booster.h"

namespace stepcast::detail {

// Trees as trained, with leaves rounded to 1e-8. Rows as in train_booster().
[[nodiscard]] Result<EncodedTrees> train_trees(std::span<const float> rows, std::size_t n_features,
                                               std::span<const float> targets, std::span<const float> weights,
                                               const BoosterOptions& options);

// The same trees with fewer digits. Every split becomes the shortest number between the two neighbouring values of the rows,
// near their middle, so that no row changes sides. Leaves are rounded to `leaf_scale`.
[[nodiscard]] EncodedTrees shortened(EncodedTrees trees, std::span<const float> rows, std::size_t n_features,
                                     double leaf_scale);

}  // namespace stepcast::detail
