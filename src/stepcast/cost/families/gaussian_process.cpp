#include "stepcast/cost/families/gaussian_process.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "stepcast/cost/families/record_numbers.h"

namespace stepcast {

Result<GaussianProcess> GaussianProcess::make(Parameters p, std::size_t n_features) {
  if (p.scale.size() != n_features)
    return Error{fmt::format("`scale` has {} numbers (must be {})", p.scale.size(), n_features)};
  GaussianProcess out;
  for (std::size_t f = 0; f < n_features; ++f) {
    if (!(p.scale[f] >= 0 && std::isfinite(p.scale[f])))
      return Error{fmt::format("`scale` holds {:g} (must not be negative)", p.scale[f])};
    if (p.scale[f] > 0) out.features_.push_back(f);
  }
  const std::size_t n = p.weights.size(), width = out.features_.size();
  if (n < 1 || n > kMostPoints) return Error{fmt::format("{} points (must be 1 to {})", n, kMostPoints)};
  if (p.points.size() != n * width)
    return Error{fmt::format("`points` has {} numbers (must be {})", p.points.size(), n * width)};
  // Feature by feature, since the inner loops of add() run over points.
  out.columns_.resize(n * width);
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t f = 0; f < width; ++f)
      out.columns_[f * n + i] = static_cast<float>(p.points[i * width + f] / kPartsOfUnit);
  out.parameters_ = std::move(p);
  return out;
}

void GaussianProcess::add(std::span<const float> rows, std::size_t stride, double weight,
                          std::span<double> sums) const {
  const std::vector<float>& weights = parameters_.weights;
  const std::size_t n = weights.size();
  // 1 + squared distance to each point, then weight times covariance.
  std::array<float, kMostPoints> distance;
  for (std::size_t row = 0; row < sums.size(); ++row) {
    const float* x = rows.data() + row * stride;
    std::fill_n(distance.begin(), n, 1.F);
    const float* column = columns_.data();
    for (const std::size_t feature : features_) {
      const float z = x[feature] * parameters_.scale[feature];
      for (std::size_t i = 0; i < n; ++i) distance[i] += (z - column[i]) * (z - column[i]);
      column += n;
    }
    for (std::size_t i = 0; i < n; ++i) distance[i] = weights[i] / (distance[i] * distance[i]);
    double value = 0;
    for (std::size_t i = 0; i < n; ++i) value += static_cast<double>(distance[i]);
    sums[row] += weight * value;
  }
}

Result<GaussianProcess> GaussianProcess::read(const JsonValue& value, std::size_t n_features) {
  Parameters p;
  STEPCAST_ASSIGN(const std::vector<double> scale, finite_numbers(value, "scale"));
  STEPCAST_ASSIGN(const std::vector<double> weights, finite_numbers(value, "weights"));
  STEPCAST_ASSIGN(p.points, whole_numbers(value, "points"));
  for (const double number : scale) p.scale.push_back(static_cast<float>(number));
  for (const double number : weights) p.weights.push_back(static_cast<float>(number));
  return make(std::move(p), n_features);
}

JsonValue GaussianProcess::write() const {
  JsonValue value = JsonValue::object();
  value.add("scale", number_array(parameters_.scale));
  value.add("points", number_text(parameters_.points));
  value.add("weights", number_text(parameters_.weights));
  return value;
}

}  // namespace stepcast
