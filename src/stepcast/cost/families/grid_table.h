// Values on a rectangular grid of one or two features, linear in between, constant outside.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "stepcast/base/json_value.h"
#include "stepcast/base/result.h"

namespace stepcast {

class GridTable {
 public:
  // Shipped platform files hold at most so many values per table.
  static constexpr std::size_t kMostValues = 2000;

  struct Axis {
    std::size_t feature = 0;
    std::vector<float> knots;  // strictly increasing
  };
  struct Parameters {
    std::vector<Axis> axes;     // one or two
    std::vector<float> values;  // the last axis runs fastest
  };
  [[nodiscard]] static Result<GridTable> make(Parameters parameters, std::size_t n_features);
  [[nodiscard]] static Result<GridTable> read(const JsonValue& value, std::size_t n_features);
  [[nodiscard]] JsonValue write() const;

  // sums[i] += weight * value at row i. Row i starts at rows[i * stride].
  void add(std::span<const float> rows, std::size_t stride, double weight, std::span<double> sums) const;

 private:
  Parameters parameters_;
};

}  // namespace stepcast
