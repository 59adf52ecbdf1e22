// Fits a table of one or two features (cost/families/grid_table.h) to scattered rows.
#pragma once

#include <cstddef>
#include <span>

#include "stepcast/cost/families/grid_table.h"

namespace stepcast::detail {

// Knots at quantiles of the rows, at most `most_knots` per axis; values are means of the rows around, drawn
// to zero where there are few. `axes`: one or two features. Rows as in train_booster().
[[nodiscard]] GridTable::Parameters fit_table(std::span<const float> rows, std::size_t n_features,
                                              std::span<const float> targets, std::span<const float> weights,
                                              std::span<const std::size_t> axes, std::size_t most_knots);

}  // namespace stepcast::detail
