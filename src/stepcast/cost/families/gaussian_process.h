// The mean of a Gaussian process: what measured points were off by, carried to what lies near them.
//
//   value(x) = sum over points p of weight_p / (1 + |z - z_p|^2)^2,    z: features times `scale`
//
// A rational quadratic covariance: no exponentials, and far from all points it goes to 0.
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
  static constexpr std::size_t kMostPoints = 512;
  // Points are written in whole numbers of such parts of a scaled feature.
  static constexpr double kPartsOfUnit = 100;

  struct Parameters {
    std::vector<float> scale;          // of each feature; 0: not looked at
    std::vector<std::int32_t> points;  // point by point, its scaled features that are looked at, in parts
    std::vector<float> weights;        // of each point
  };
  // Errors: other lengths than these, too many points, scales that are negative or not finite.
  [[nodiscard]] static Result<GaussianProcess> make(Parameters parameters, std::size_t n_features);
  [[nodiscard]] static Result<GaussianProcess> read(const JsonValue& value, std::size_t n_features);
  [[nodiscard]] JsonValue write() const;

  // sums[i] += weight * value at row i. Row i starts at rows[i * stride].
  void add(std::span<const float> rows, std::size_t stride, double weight, std::span<double> sums) const;

  [[nodiscard]] static constexpr double covariance(double squared_distance) {
    return 1 / ((1 + squared_distance) * (1 + squared_distance));
  }

 private:
  Parameters parameters_;
  std::vector<std::size_t> features_;  // that are looked at
  std::vector<float> columns_;         // scaled points, feature by feature
};

}  // namespace stepcast
