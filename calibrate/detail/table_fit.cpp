#include "calibrate/detail/table_fit.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "stepcast/cost/families/record_numbers.h"

namespace stepcast::detail {
namespace {

// Rows' worth of "no correction" at every knot.
constexpr double kPull = 0.3;

std::vector<float> knots_of(std::span<const float> rows, std::size_t n_features, std::size_t feature,
                            std::size_t most) {
  std::vector<float> values;
  for (std::size_t i = feature; i < rows.size(); i += n_features) values.push_back(rows[i]);
  std::ranges::sort(values);
  std::vector<float> distinct = values;
  distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
  std::vector<float> knots;
  if (distinct.size() <= most)
    knots = distinct;
  else
    for (std::size_t i = 0; i < most; ++i) knots.push_back(distinct[i * (distinct.size() - 1) / (most - 1)]);
  for (float& knot : knots) knot = static_cast<float>(rounded(static_cast<double>(knot), 5));
  knots.erase(std::unique(knots.begin(), knots.end()), knots.end());
  return knots;
}

// Spacing of the knots around x, for the width of the neighbourhood.
double spacing(const std::vector<float>& knots, std::size_t i) {
  if (knots.size() == 1) return 1;
  const std::size_t a = i == 0 ? 0 : i - 1, b = std::min(i + 1, knots.size() - 1);
  return static_cast<double>(knots[b] - knots[a]) / static_cast<double>(b - a);
}

}  // namespace

GridTable::Parameters fit_table(std::span<const float> rows, std::size_t n_features,
                                std::span<const float> targets, std::span<const float> weights,
                                std::span<const std::size_t> axes, std::size_t most_knots) {
  GridTable::Parameters p;
  for (const std::size_t feature : axes)
    p.axes.push_back({feature, knots_of(rows, n_features, feature, most_knots)});
  std::size_t count = 1;
  for (const GridTable::Axis& axis : p.axes) count *= axis.knots.size();
  const std::size_t width = p.axes.back().knots.size();
  for (std::size_t cell = 0; cell < count; ++cell) {
    const std::size_t index[2] = {p.axes.size() == 2 ? cell / width : cell, cell % width};
    double sum = 0, total = kPull;
    for (std::size_t row = 0; row < targets.size(); ++row) {
      double distance = 0;
      for (std::size_t a = 0; a < p.axes.size(); ++a) {
        const GridTable::Axis& axis = p.axes[a];
        const double d = static_cast<double>(rows[row * n_features + axis.feature] - axis.knots[index[a]]) /
                         (0.5 * spacing(axis.knots, index[a]));
        distance += d * d;
      }
      if (distance > 12) continue;
      const double w =
          std::exp(-0.5 * distance) * (weights.empty() ? 1.0 : static_cast<double>(weights[row]));
      sum += w * static_cast<double>(targets[row]);
      total += w;
    }
    p.values.push_back(static_cast<float>(rounded(sum / total, 4)));
  }
  return p;
}

}  // namespace stepcast::detail
