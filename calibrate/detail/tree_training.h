// Trains regression trees and brings them into the form of model records.
#pragma once

#include <cstddef>
#include <span>

#include "stepcast/base/result.h"
#include "stepcast/cost/families/gradient_trees.h"

#include "calibrate/boosting/booster.h"

namespace stepcast::detail {

// Trees as they were trained, leaves to 1e-8. Rows as in train_booster().
[[nodiscard]] Result<EncodedTrees> train_trees(std::span<const float> rows, std::size_t n_features,
                                               std::span<const float> targets, std::span<const float> weights,
                                               const BoosterOptions& options);

// The same trees with fewer digits: every cut becomes the shortest number between the two values of the rows
// that it lies between, near their middle, so that no row changes sides; leaves are rounded to `leaf_scale`.
[[nodiscard]] EncodedTrees shortened(EncodedTrees trees, std::span<const float> rows, std::size_t n_features,
                                     double leaf_scale);

}  // namespace stepcast::detail
