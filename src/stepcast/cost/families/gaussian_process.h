// The mean of a Gaussian process: the errors at measured points, interpolated to points near them.
//
//   value(x) = sum over points p of weight_p / (1 + |z - z_p|^2)^2,    z: features times `scale`
//
// The rational quadratic covariance needs no exponentials and falls to 0 far from all points.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "stepcast/base/json_value.h"
#include "stepcast/base/result.h"

namespace stepcast {

class GaussianProcess {
 public:
  // Limit of the points, so that distances fit on the stack.
  static constexpr std::size_t kMostPoints = 512;
  // Points are stored as whole multiples of 1 / kPartsOfUnit of a scaled feature.
  static constexpr double kPartsOfUnit = 100;

  // As stored in a record.
  struct Parameters {
    std::vector<float> scale;          // of each feature; 0: unused
    std::vector<std::int32_t> points;  // point by point, the scaled features in use, in parts
    std::vector<float> weights;        // of each point
  };
  // Errors: inconsistent lengths, too many points, scales that are negative or not finite.
  [[nodiscard]] static Result<GaussianProcess> make(Parameters parameters, std::size_t n_features);
  [[nodiscard]] static Result<GaussianProcess> read(const JsonValue& value, std::size_t n_features);
  [[nodiscard]] JsonValue write() const;

  // sums[i] += weight * value at row i. Row i starts at rows[i * stride]. O(points * features in use) per
  // row.
  void add(std::span<const float> rows, std::size_t stride, double weight, std::span<double> sums) const;

  [[nodiscard]] static constexpr double covariance(double squared_distance) {
    return 1 / ((1 + squared_distance) * (1 + squared_distance));
  }

 private:
  Parameters parameters_;
  std::vector<std::size_t> features_;  // features in use
  std::vector<float> columns_;         // scaled points, feature by feature
};

}  // namespace stepcast
